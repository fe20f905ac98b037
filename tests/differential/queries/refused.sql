-- such a join with an array -- Spark leaves out rows without elements even there
SELECT c.id, u.tag FROM customers c LEFT JOIN LATERAL explode(c.tags) AS u(tag);
-- `stack` -- nobody has asked for it yet
SELECT id, stack(2, 'a', id, 'b', -id) FROM tree;
-- as rows -- the same as a view
SELECT id, k, v FROM tree LATERAL VIEW stack(2, 'a', id, 'b', -id) s AS k, v;
-- `approx_count_distinct` -- each engine estimates in its own way
SELECT approx_count_distinct(id) FROM events;
-- LIMIT `1 + 1` -- a number is expected
SELECT id FROM tree ORDER BY id LIMIT 1 + 1;
-- `SAMPLE` of a table -- each engine takes other rows
SELECT count(*) FROM customers TABLESAMPLE (50 PERCENT);
-- a set operation BY NAME -- this Spark has no such words
SELECT y, x FROM a UNION ALL BY NAME SELECT x, y FROM c;
-- ALL (SELECT x FROM b) -- this Spark has no such words
SELECT x FROM a WHERE x <= ALL (SELECT x FROM b);
-- a query within a grouped one that names its columns -- Spark asks for it in GROUP BY
SELECT x, (SELECT max(z) FROM b WHERE b.x = a.x) FROM a GROUP BY x;
-- a recursive query -- its steps are Spark's
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r;
-- IN with a query inside of other conditions -- Spark moves NOT inside and means something else by it then
SELECT x FROM a WHERE NOT (x = 1 OR x IN (SELECT x FROM b));
-- by maps -- Spark can not tell them apart
SELECT DISTINCT attrs FROM customers;
-- a window in ORDER BY -- Spark has none there
SELECT id FROM tree ORDER BY row_number() OVER (ORDER BY label);
