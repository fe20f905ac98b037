-- AND, OR, NOT, CASE, nulls
b AND b2
b OR b2
NOT b
i IS NULL
s IS NOT NULL
coalesce(i, i2)
coalesce(i, l)
CASE WHEN b THEN i ELSE i2 END
CASE WHEN b THEN 1 WHEN b2 THEN 2 END
if(b, s, s2)
-- mixed types, and functions that choose
coalesce(i, n)
coalesce(n, i)
coalesce(i, d)
coalesce(f, l)
coalesce(m, l)
coalesce(m, d)
coalesce(dt, ts)
CASE WHEN b THEN i ELSE n END
CASE WHEN b THEN 'a' ELSE 1 END
CASE WHEN b THEN m ELSE m38 END
CASE WHEN b THEN m ELSE 1 END
CASE WHEN b THEN 1 ELSE 2.5 END
nullif(i, i2)
nullif(i, l)
nullif(d, 0)
nvl(i, l)
nvl2(i, l, d)
nvl2(b, 'a', 1)
ifnull(i, i2)
nanvl(d, d2)
nanvl(f, f2)
nanvl(f, d)
nanvl(i, d)
isnan(d)
isnan(f)
isnan(i)
zeroifnull(i)
nullifzero(i)
zeroifnull(m)
if(b, i, l)
decode(i, 1, 'one', 2, 'two', 'many')
decode(i, 1, 'one')
decode(i, NULL, 'none', 'some')
-- what is not computed can not fail
id IN (id, 1 div (id - id))
NULL IN (1, 2)
i IN (i2, n)
i IN (1, '2')
CASE WHEN id = 12345 THEN 1 div 0 ELSE 2 END
if(id < 0, 1 div 0, 2)
coalesce(id, 1 div (id - id))
nvl2(id, 1, 1 div (id - id))
b IS NULL OR NOT b OR b AND 1 div (id - id) > 0
id >= 0 OR 1 div (id - id) > 0
id < 0 AND 1 div (id - id) > 0
id < 0 AND CAST(s AS INT) > 0
nullif(i, 1 div 1)
CAST(NULL AS INT) % 0
0 % CAST(NULL AS INT)
coalesce(i / nullif(i2, 0), 0)
CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END
NULL AND b
NULL OR b
NOT NULL
b = NULL
NULL <=> NULL
(b AND b2) IS NOT NULL
NOT (i > 3 AND i2 < 5)
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END
if(i > 0, m, 0)
coalesce(NULL, NULL)
coalesce(m, 0)
coalesce(d, 0)
coalesce(s, '')
coalesce(dt, '2024-01-01')
if(b, ts, dt)
if(b, 1, 2L)
if(b, ai, ai2)
if(b, NULL, i)
nvl(s, 'none')
-- behind a null nothing is computed; of quotients the right side comes first
-- (no line mirrors another: of a = b and b = a in one query Spark computes one)
(CASE WHEN id < 0 THEN d END) / (1 div (id - id))
(1 div (id - id)) / (CASE WHEN id < 0 THEN d END)
(CASE WHEN id < 0 THEN i END) + 1 div (id - id)
1 div (id - id) + (CASE WHEN id < 0 THEN l END)
(CASE WHEN id < 0 THEN i END) % (1 div (id - id))
(1 div (id - id)) % (CASE WHEN id < 0 THEN i END)
(CASE WHEN id < 0 THEN i END) div (1 div (id - id))
(CASE WHEN id < 0 THEN l END) div (2 div (id - id))
(1 div (id - id)) div (CASE WHEN id < 0 THEN i END)
(CASE WHEN id < 0 THEN i END) * (1 div (id - id))
(CASE WHEN id < 0 THEN i END) = 1 div (id - id)
1 div (id - id) = (CASE WHEN id < 0 THEN l END)
(CASE WHEN id < 0 THEN d END) < (1 div (id - id))
