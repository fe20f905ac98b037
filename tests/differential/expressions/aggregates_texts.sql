-- texts of all rows; those with DISTINCT have a file of their own, since Spark fails at both in one query
listagg(s) WITHIN GROUP (ORDER BY id)
listagg(s, ',') WITHIN GROUP (ORDER BY id DESC)
string_agg(s, '; ') WITHIN GROUP (ORDER BY i, id)
listagg(s, ',') WITHIN GROUP (ORDER BY s)
listagg(s2, ',') WITHIN GROUP (ORDER BY id) FILTER (WHERE b)
listagg(s2, NULL) WITHIN GROUP (ORDER BY id)
listagg(s, ',') WITHIN GROUP (ORDER BY struct(i, id))
