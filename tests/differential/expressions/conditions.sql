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
