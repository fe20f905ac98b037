"""Queries of materialized tables, one for each operator and shape, and whether they follow changes."""

from __future__ import annotations

FOLLOWED = {
    "tumbling windows": "SELECT window_start, window_end, count(*) AS n, sum(v) AS s "
    "FROM TABLE(TUMBLE(TABLE stock, DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
    "hopping windows": "SELECT b, window_start, max(v) AS m "
    "FROM TABLE(HOP(TABLE stock, DESCRIPTOR(at), INTERVAL '1' HOUR, INTERVAL '3' HOUR)) GROUP BY b, window_start",
    "growing windows": "SELECT window_end, count(*) AS n "
    "FROM TABLE(CUMULATE(TABLE stock, DESCRIPTOR(at), INTERVAL '6' HOUR, INTERVAL '1' DAY)) GROUP BY window_end",
    "sessions": "SELECT a, window_start, window_end, count(*) AS n, sum(v) AS s "
    "FROM TABLE(SESSION(TABLE stock PARTITION BY a, DESCRIPTOR(at), INTERVAL '2' HOUR)) "
    "GROUP BY a, window_start, window_end",
    "all rows": "SELECT * FROM orders",
    "filter": "SELECT id, amount + 1 AS more FROM orders WHERE amount > 2 AND note IS NOT NULL",
    "without the key": "SELECT note, amount FROM orders WHERE amount > 0",
    "columns that do not change": "SELECT id, note FROM orders",
    "append table": "SELECT oid, qty FROM events WHERE kind = 'buy'",
    "inner join": "SELECT o.id, c.name, o.price FROM orders o JOIN customers c ON o.cust = c.cid",
    "join without keys": "SELECT o.note, c.name FROM orders o JOIN customers c ON o.cust = c.cid",
    "join with conditions": "SELECT o.id, c.cid FROM orders o JOIN customers c ON o.cust = c.cid AND o.amount > c.cid",
    "join of other types": "SELECT o.id, e.qty FROM orders o JOIN events e ON o.amount = e.oid",
    "three tables": "SELECT o.id, c.region, s.v FROM orders o JOIN customers c ON o.cust = c.cid "
    "JOIN stock s ON s.a = c.cid",
    "cross join": "SELECT c.cid, s.a, s.b FROM customers c CROSS JOIN stock s WHERE s.v > 2",
    "inequality": "SELECT o.id, c.cid FROM orders o JOIN customers c ON o.cust < c.cid",
    "left join": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.cust = c.cid",
    "left join with a condition": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c "
    "ON o.cust = c.cid AND c.vip AND o.amount > 1",
    "left join of many": "SELECT c.cid, o.id, o.note FROM customers c LEFT JOIN orders o ON o.cust = c.cid",
    "left join without keys": "SELECT c.name, e.kind FROM customers c LEFT JOIN events e ON e.oid = c.cid",
    "right join": "SELECT o.id, c.cid, c.name FROM orders o RIGHT JOIN customers c ON o.cust = c.cid",
    "full join": "SELECT o.id, o.note, c.cid, c.name FROM orders o FULL JOIN customers c ON o.cust = c.cid",
    "full join using": "SELECT a, s.v, t.w FROM stock s FULL JOIN (SELECT a, count(*) AS w FROM stock WHERE v > 1 "
    "GROUP BY a) t USING (a)",
    "left then where": "SELECT o.id FROM orders o LEFT JOIN customers c ON o.cust = c.cid WHERE c.cid IS NULL",
    "semi join": "SELECT * FROM customers c LEFT SEMI JOIN orders o ON o.cust = c.cid AND o.amount > 3",
    "anti join": "SELECT * FROM customers c LEFT ANTI JOIN orders o ON o.cust = c.cid",
    "exists": "SELECT cid, name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.cid "
    "AND o.note = 'red')",
    "not exists": "SELECT cid FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.cid "
    "AND o.amount > c.cid)",
    "in": "SELECT id, note FROM orders WHERE cust IN (SELECT cid FROM customers WHERE vip)",
    "in and more": "SELECT id FROM orders WHERE amount > 0 AND cust IN (SELECT cid FROM customers) "
    "AND id IN (SELECT oid FROM events WHERE kind = 'buy')",
    "in with a correlation": "SELECT id FROM orders o WHERE note IN (SELECT 'red' FROM customers c WHERE c.cid "
    "= o.cust)",
    "value of a query": "SELECT c.cid, (SELECT max(o.amount) FROM orders o WHERE o.cust = c.cid) AS most FROM "
    "customers c",
    "count of a query": "SELECT c.cid, (SELECT count(*) + 1 FROM orders o WHERE o.cust = c.cid) AS n FROM customers c",
    "compared with a query": "SELECT o.id FROM orders o WHERE o.amount >= (SELECT max(p.amount) FROM orders p "
    "WHERE p.cust = o.cust)",
    "self join": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust AND a.id < b.id",
    "self left join": "SELECT a.id, b.note FROM orders a LEFT JOIN orders b ON a.amount = b.id",
    "union all": "SELECT id, note FROM orders WHERE amount > 1 UNION ALL SELECT oid, kind FROM events",
    "union": "SELECT note FROM orders UNION SELECT name FROM customers",
    "distinct": "SELECT DISTINCT cust, note FROM orders",
    "group by": "SELECT cust, count(*) AS n, sum(amount) AS total, sum(price) AS money FROM orders GROUP BY cust",
    "group by an expression": "SELECT amount % 3 AS rest, min(note) AS first_note FROM orders GROUP BY amount % 3",
    "aggregates": "SELECT note, count(amount) AS c, avg(amount) AS a, avg(price) AS p, min(day) AS lo, max(day) "
    "AS hi, "
    "count(DISTINCT cust) AS d, sum(ratio) AS r, bool_or(amount > 3) AS any_big FROM orders GROUP BY note",
    "filtered aggregates": "SELECT cust, count(*) FILTER (WHERE amount > 2) AS big, max(amount) FILTER (WHERE "
    "note = 'red') "
    "AS red FROM orders GROUP BY cust",
    "key is not selected": "SELECT count(*) AS n FROM orders GROUP BY cust",
    "having": "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust HAVING sum(amount) > 3 AND count(*) < 4",
    "nested groups": "SELECT n, count(*) AS customers FROM (SELECT cust, count(*) AS n FROM orders GROUP BY "
    "cust) GROUP BY n",
    "mean of counts": "SELECT region, avg(n) AS mean FROM (SELECT c.cid, c.region, count(o.id) AS n FROM customers c "
    "LEFT JOIN orders o ON o.cust = c.cid GROUP BY c.cid, c.region) GROUP BY region",
    "group and join": "SELECT c.name, t.total FROM customers c JOIN (SELECT cust, sum(price) AS total FROM orders "
    "GROUP BY cust) t ON t.cust = c.cid",
    "join and group": "SELECT c.region, o.note, sum(o.price) AS money, count(*) AS n FROM orders o JOIN customers c "
    "ON o.cust = c.cid GROUP BY c.region, o.note",
    "of appends": "SELECT kind, sum(qty) AS total, count(*) AS n FROM events GROUP BY kind",
    "top rows": "SELECT cust, id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY cust "
    "ORDER BY amount DESC, id) <= 2",
    "top rows of a query": "SELECT cust, id FROM (SELECT cust, id, row_number() OVER (PARTITION BY cust ORDER "
    "BY price DESC, "
    "id) AS place FROM orders) WHERE place = 1",
    "windows": "SELECT id, sum(amount) OVER (PARTITION BY cust ORDER BY id) AS so_far, "
    "lag(note) OVER (PARTITION BY cust ORDER BY id) AS before FROM orders",
    "rank of groups": "SELECT region, cid, n, rank() OVER (PARTITION BY region ORDER BY n DESC) AS place FROM "
    "(SELECT "
    "c.region, c.cid, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.cust = c.cid GROUP BY c.region, "
    "c.cid)",
    "group over a window": "SELECT cust, sum(amount) AS best FROM (SELECT cust, amount, row_number() OVER "
    "(PARTITION BY "
    "cust ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 2 GROUP BY cust",
    "with": "WITH big AS (SELECT * FROM orders WHERE amount > 1), named AS (SELECT cid, name FROM customers) "
    "SELECT n.name, count(*) AS n FROM big b JOIN named n ON b.cust = n.cid GROUP BY n.name",
    "used twice": "WITH per AS (SELECT cust, sum(amount) AS t FROM orders GROUP BY cust) "
    "SELECT a.cust, b.cust AS other FROM per a JOIN per b ON a.t = b.t AND a.cust < b.cust",
    "values": "SELECT o.id, v.word FROM orders o JOIN (VALUES (1, 'one'), (2, 'two'), (2, 'deux')) AS v(n, word) "
    "ON o.amount = v.n",
    "unnest": "SELECT id, tag FROM orders LATERAL VIEW explode(tags) t AS tag",
    "unnest outer": "SELECT tag, count(*) AS n FROM orders LATERAL VIEW OUTER explode(tags) t AS tag GROUP BY tag",
    "time windows": "SELECT date_trunc('hour', at) AS hour, sum(v) AS v, count(*) AS n FROM stock GROUP BY "
    "date_trunc('hour', at)",
    "array column": "SELECT tags, count(*) AS n FROM orders GROUP BY tags",
    "case": "SELECT CASE WHEN amount > 3 THEN 'big' WHEN amount > 0 THEN 'small' END AS size, count(*) AS n "
    "FROM orders GROUP BY 1",
    "total of all": "SELECT count(*) AS n, sum(amount) AS total, avg(price) AS mean, count(note) AS notes FROM orders",
    "total of a join": "SELECT sum(o.amount) AS total FROM orders o JOIN customers c ON o.cust = c.cid WHERE c.vip",
    "computed from sums": "SELECT sum(price) / count(*) AS mean, note FROM orders GROUP BY note",
    "filtered sums": "SELECT cust, sum(amount) FILTER (WHERE note = 'red') AS red, count_if(amount > 2) AS big "
    "FROM orders GROUP BY cust",
    "mixed aggregates": "SELECT cust, sum(amount) AS total, max(amount) AS most FROM orders GROUP BY cust",
    "ordered": "SELECT id, amount FROM orders ORDER BY amount",
}
"""Those that are kept up to date from changes alone."""

COMPUTED = {
    "total": "SELECT min(amount) AS m, count(DISTINCT note) AS n FROM orders",
    "limit": "SELECT id FROM orders ORDER BY id LIMIT 3",
    "not in": "SELECT cid FROM customers WHERE cid NOT IN (SELECT cust FROM orders WHERE cust IS NOT NULL)",
    "except": "SELECT cust FROM orders EXCEPT SELECT cid FROM customers",
    "intersect": "SELECT cust FROM orders INTERSECT SELECT cid FROM customers",
    "window over all": "SELECT id, rank() OVER (ORDER BY amount, id) AS place FROM orders",
    "rollup": "SELECT cust, note, count(*) AS n FROM orders GROUP BY ROLLUP(cust, note)",
    "compared with the mean": "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
    "sum of sums of fractions": "SELECT r, count(*) AS n FROM (SELECT cust, sum(ratio) AS r FROM orders GROUP "
    "BY cust) GROUP BY r",
}
"""Those that are computed anew."""
