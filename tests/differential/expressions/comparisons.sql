-- comparisons
i = i2
i <> i2
i < l
i <= i2
l > l2
l >= i
d = d2
d < d2
d > f
f = f2
f >= d2
m = m2
m < i
m > d
m38 = m
m38 < m5
b = b2
b < b2
s = s2
s < s2
s >= s2
y = y
y < X'FF'
dt = dt2
dt < dt2
ts < ts2
nt = nt2
i <=> i2
d <=> d2
s <=> NULL
i IS DISTINCT FROM i2
i IS NOT DISTINCT FROM i2
i IN (1, 2, 3)
i IN (1, NULL)
i NOT IN (1, 2)
l IN (1, i)
d IN (0.5D, 2.5D)
m IN (1, 2.5)
s IN ('a', 'abc')
b IS TRUE
b IS NOT FALSE
i BETWEEN 1 AND 5
d NOT BETWEEN -1 AND 2.5
ai = ai2
r = r
i = '1'
1 < 2L
equal_null(i, i2)
-- mixed types
i = n
d = n
m = n
b = n
dt = '2024-01-01'
ts > '2024-01-01'
nt < '2024-05-01 10:00:00'
dt < ts
dt = nt
nt < ts
b = 'true'
i IN ('1', '2')
i IN (1L, 2.5)
n IN (1, 2)
m IN (1, 2.5D)
greatest(i, l)
greatest(i, d, m)
least(s, s2)
greatest(m, i)
greatest(d, d2)
least(d, d2)
least(f, d)
greatest(i, i2, NULL)
greatest(dt, dt2)
m = 1
l = 1.5
m < 2.5D
