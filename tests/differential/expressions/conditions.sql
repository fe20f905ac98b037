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
