-- joined together
s || s2
s || '-' || s2
'a' || NULL
concat(s, s2)
concat(s, '|', s2, '|', n)
concat(y, y)
concat(s)
concat(ai, ai2)
ai || ai2
concat_ws('-', s, s2)
concat_ws(',', s, s2, n)
concat_ws(s2, s, n)
concat_ws(',', as_)
concat_ws(',', s, as_, s2)
concat_ws('')
concat_ws(',', s)
-- letters
upper(s)
ucase(s)
lower(s)
lcase(s)
lower(upper(s))
upper(s2)
initcap(s)
initcap(concat(s, ' ', s))
reverse(s)
reverse(ai)
translate(s, 'abc', 'xy')
translate(s, 'ßa', 'aß')
translate(s, 'aab', 'xyz')
translate(s, 'l', '')
translate(s, '', 'x')
-- lengths and parts
length(s)
char_length(s)
character_length(s)
len(s)
length(y)
octet_length(s)
octet_length(y)
bit_length(s)
bit_length(y)
substring(s, 2)
substring(s, 2, 3)
substring(s, 0, 2)
substring(s, 0)
substring(s, 1, 0)
substring(s, 1, -1)
substring(s, -3)
substring(s, -3, 2)
substring(s, -7, 5)
substring(s, -100, 99)
substring(s, i)
substring(s, i, 3)
substring(s, i, i2)
substring(s, t, h)
substr(s, 2, 2)
substring(s FROM 2 FOR 2)
left(s, 2)
left(s, i)
left(s, -1)
right(s, 2)
right(s, i)
right(s, 0)
split(s, ',')
split(s, ' ')
split(s, '[,b]')
split(s, '\\.')
split(s, ',', -1)
split(s, '\\s+')
split_part(s, ',', 1)
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, ',', 9)
split_part(s, 'l', 2)
split_part(s, s2, 1)
split_part(s, ',', i)
split_part(s, '', 1)
split_part(s, '', 2)
substring_index(s, ',', 1)
substring_index(s, ',', 2)
substring_index(s, ',', -2)
substring_index(s, ',', 0)
substring_index(s, 'l', i)
substring_index(s, '-', 5)
-- at the ends
trim(s)
ltrim(s)
rtrim(s)
btrim(s)
btrim(s, 'ac')
trim('a' FROM s)
trim(BOTH 'ac ' FROM s)
trim(LEADING 'aA' FROM s)
trim(TRAILING 'cd' FROM s)
trim(BOTH FROM s)
trim(s2 FROM s)
trim(BOTH 'ße' FROM s)
lpad(s, 5)
lpad(s, 5, 'xy')
lpad(s, 5, '语')
lpad(s, 0, 'x')
lpad(s, -1, 'x')
lpad(s, 6, s2)
lpad(s, t, '*')
rpad(s, 5)
rpad(s, 5, 'xy')
rpad(s, 6, s2)
rpad(s, 2)
rpad(n, 4, '')
repeat(s, 3)
repeat(s, 0)
repeat(s, -2)
repeat(s2, t)
space(3)
space(t)
replace(s, 'a', 'b')
replace(s, 'b')
replace(s, s2, '_')
replace(s, s2, n)
replace(s, '', 'x')
-- found in text
instr(s, 'b')
instr(s, s2)
instr(s, '')
instr(s, '語')
instr(s, 'x')
locate('b', s)
locate(s2, s)
locate('l', s, 4)
locate(s2, s, 2)
locate('', s, 3)
locate('a', s, i)
locate('a', s, 0)
locate('a', s, NULL)
position('b' IN s)
position(s2, s)
startswith(s, 'a')
startswith(s, s2)
startswith(s, '')
endswith(s, 'c')
endswith(s, s2)
contains(s, 'b')
contains(s, s2)
contains(s, '')
find_in_set('y', s)
find_in_set('', s)
find_in_set(s2, 'a,b,abc,,语')
find_in_set(s, s)
find_in_set(',', s)
s LIKE 'a%'
s LIKE '%b%'
s LIKE '%c'
s LIKE 'abc'
s LIKE '_bc'
s LIKE '___'
s LIKE '_'
s LIKE '%'
s LIKE ''
s LIKE '%\\%%'
s LIKE '%\\_%'
s LIKE '%!%%' ESCAPE '!'
s LIKE '%/_%' ESCAPE '/'
s LIKE '%ß%'
s NOT LIKE 'a%'
s LIKE '日_語'
s ILIKE 'A%'
s ILIKE '%B%'
s NOT ILIKE 'abc'
s RLIKE 'a'
s RLIKE '^a'
s RLIKE '^[a-c]+'
s RLIKE 'a.b'
s RLIKE '\\d+'
s RLIKE '^\\d{4}-\\d{2}'
s RLIKE 'a|x'
s RLIKE '\\s'
s RLIKE '[^a-z]'
s RLIKE '(a|b)c'
s RLIKE 'l{2}'
s RLIKE '日.語'
s REGEXP 'b'
regexp_like(s, 'b+')
regexp(s, 'h')
s NOT RLIKE 'a'
regexp_extract(s, '(\\d+)-(\\d+)', 1)
regexp_extract(s, '(\\d+)-(\\d+)', 2)
regexp_extract(s, '(\\d+)-(\\d+)')
regexp_extract(s, '[a-z]+', 0)
regexp_extract(s, 'l(.)', 1)
regexp_extract_all(s, '(\\d+)', 1)
regexp_extract_all(s, '[a-z]', 0)
regexp_replace(s, '[aeiou]', '*')
regexp_replace(s, '\\d+', '#')
regexp_replace(s, 'b', '')
regexp_replace(s, '\\W', '_')
regexp_count(s, 'l')
regexp_count(s, '[a-z]+')
regexp_substr(s, '[0-9]+')
regexp_substr(s, 'l.')
-- single signs, bytes
ascii(s)
ascii(s2)
elt(1, s, s2)
elt(2, s, s2)
elt(i2, s, s2, n, s, s, s, s, s)
elt(t, s, s2)
md5(s)
md5(y)
sha1(s)
sha(y)
sha2(s, 256)
sha2(y, 0)
base64(y)
base64(s)
hex(i)
hex(l)
hex(t)
hex(s)
hex(y)
unhex(n)
unhex(hex(s))
unhex(s)
encode(s, 'UTF-8')
encode(s, 'utf-8')
decode(encode(s, 'UTF-8'), 'UTF-8')
decode(y, 'UTF-8')
-- more of the same, and arguments of other types
ltrim('a', s)
rtrim('c', s)
trim('a', s)
split(s, ',', 2)
split(s, ',', 1)
split(s, 'l', 3)
split(s, ',', 0)
s RLIKE 'c$'
s RLIKE '^abc$'
s RLIKE '^$'
s RLIKE '[a-z]+$'
s RLIKE '^\\d+$'
s RLIKE '^[+-]?\\d+(?:\\.\\d+)?$'
regexp_extract(s, '([a-z]+)$', 1)
regexp_extract(s, '^(\\w)', 1)
regexp_replace(s, '(l)(o)', '$2$1')
regexp_replace(s, '([a-z])', '<$1>')
regexp_replace(s, 'l+', '$0$0')
regexp_count(s, '\\d')
regexp_substr(s, '^a.')
chr(i)
chr(l2)
char(h)
levenshtein(s, s2)
levenshtein(s, 'hello')
levenshtein(s, n)
format_string('%s-%d', s, i)
format_string('100%% %s', n)
printf('%d/%s', l, s2)
format_string('x')
unbase64(base64(y))
unbase64(base64(s))
i || s
d || s
m || s
dt || s
ts || ''
nt || s
b || s
f || '!'
l || 'x'
length(i)
length(d)
upper(b)
left(s, NULL)
substring(s, NULL)
upper(NULL)
lpad(s, NULL)
concat(s, NULL)
locate(NULL, s, 1)
lpad(i, 5, '0')
contains(i, '1')
replace(l, '1', '2')
concat(i, '-', l, '-', b)
concat_ws('-', i, l, dt)
i LIKE '1%'
substring(l, 2, 3)
reverse(i)
