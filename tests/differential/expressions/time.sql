-- parts
year(dt)
year(ts)
year(nt)
quarter(dt)
month(dt)
month(ts)
day(dt)
dayofmonth(ts)
dayofweek(dt)
dayofweek(ts)
weekday(dt)
dayofyear(dt)
dayofyear(nt)
weekofyear(dt)
weekofyear(ts)
hour(ts)
hour(nt)
hour(dt)
minute(ts)
minute(nt)
second(ts)
second(nt)
extract(YEAR FROM dt)
extract(YEAR FROM ts)
extract(YEAROFWEEK FROM dt)
extract(QUARTER FROM ts)
extract(MONTH FROM nt)
extract(WEEK FROM dt)
extract(DAY FROM ts)
extract(DAYOFWEEK FROM dt)
extract(DOW FROM ts)
extract(DAYOFWEEK_ISO FROM dt)
extract(DOW_ISO FROM nt)
extract(DOY FROM ts)
extract(HOUR FROM ts)
extract(MINUTE FROM ts)
extract(SECOND FROM ts)
extract(SECOND FROM nt)
extract(HOUR FROM nt)
date_part('year', ts)
date_part('SECONDS', ts)
date_part('doy', dt)
datepart('week', nt)
dayname(dt)
dayname(ts)
monthname(dt)
last_day(dt)
last_day(ts)
next_day(dt, 'Mon')
next_day(dt, 'SUNDAY')
next_day(ts, 'tu')
make_date(2024, 2, 29)
make_date(2024, i2, 3)
make_date(h, 12, i2)
make_date(2024, 2, t)
make_date(year(dt), month(dt), 1)
make_timestamp(2024, i2, 3, 4, 5, 6)
make_timestamp(2024, 10, 27, 2, 30, 0)
make_timestamp(2024, 3, 31, 2, 30, 0)
make_timestamp(year(ts), 3, 31, 2, i2, 60)
make_timestamp_ntz(2024, 3, 31, 2, 30, 60)
make_timestamp_ntz(2024, 3, 31, t, 30, 0)
make_timestamp_ltz(1890, 3, 31, 2, 30, 0)
-- cut to a unit
date_trunc('YEAR', ts)
date_trunc('quarter', ts)
date_trunc('MONTH', ts)
date_trunc('week', ts)
date_trunc('DAY', ts)
date_trunc('hour', ts)
date_trunc('minute', ts)
date_trunc('second', ts)
date_trunc('millisecond', ts)
date_trunc('microsecond', ts)
date_trunc('month', dt)
date_trunc('hour', nt)
date_trunc('week', nt)
trunc(dt, 'year')
trunc(dt, 'quarter')
trunc(dt, 'MM')
trunc(dt, 'week')
trunc(ts, 'month')
-- now
current_date() IS NULL
current_timestamp() IS NULL
now() IS NULL
localtimestamp() IS NULL
current_timezone()
datediff(current_date(), date_sub(current_date(), 3))
-- added
date_add(dt, 3)
date_add(dt, i)
date_add(ts, 1)
date_add(dt, h)
date_sub(dt, 40)
date_sub(nt, i2)
dateadd(dt, 5)
add_months(dt, 1)
add_months(dt, i)
add_months(dt, -13)
add_months(ts, 2)
timestampadd(YEAR, 1, ts)
timestampadd(QUARTER, i2, ts)
timestampadd(MONTH, i2, ts)
timestampadd(MONTH, -1, nt)
timestampadd(WEEK, 2, ts)
timestampadd(DAY, i, ts)
timestampadd(DAY, 1, nt)
timestampadd(DAY, 1, dt)
timestampadd(HOUR, i, ts)
timestampadd(HOUR, -30, ts)
timestampadd(HOUR, 1, nt)
timestampadd(MINUTE, 90, ts)
timestampadd(SECOND, i, ts)
timestampadd(MICROSECOND, 1, ts)
dateadd(MONTH, 1, ts)
dateadd(DAY, 1, dt)
date_add(HOUR, 5, ts)
-- between two
datediff(dt, dt2)
datediff(ts, ts2)
datediff(ts, dt)
date_diff(dt, dt2)
date_diff(DAY, dt, dt2)
datediff(MONTH, ts, ts2)
timestampdiff(YEAR, ts, ts2)
timestampdiff(QUARTER, ts, ts2)
timestampdiff(MONTH, ts, ts2)
timestampdiff(MONTH, dt, dt2)
timestampdiff(MONTH, nt, nt2)
timestampdiff(WEEK, ts, ts2)
timestampdiff(DAY, ts, ts2)
timestampdiff(HOUR, ts, ts2)
timestampdiff(HOUR, nt, nt2)
timestampdiff(MINUTE, dt, ts)
timestampdiff(SECOND, ts, ts2)
timestampdiff(MILLISECOND, ts, ts2)
timestampdiff(MICROSECOND, ts, ts2)
months_between(dt, dt2)
months_between(ts, ts2)
months_between(ts, ts2, false)
months_between(nt, nt2)
-- numbers since 1970, zones, texts
unix_timestamp(ts)
unix_timestamp(dt)
unix_timestamp(nt)
to_unix_timestamp(ts)
unix_seconds(ts)
unix_millis(ts)
unix_micros(ts)
unix_date(dt)
date_from_unix_date(h)
timestamp_seconds(i)
timestamp_millis(i)
timestamp_micros(i)
timestamp_seconds(t)
from_unixtime(i)
from_unixtime(h)
from_unixtime(i, 'yyyy-MM-dd')
from_utc_timestamp(ts, 'America/New_York')
from_utc_timestamp(ts, 'Asia/Tokyo')
to_utc_timestamp(ts, 'America/New_York')
to_utc_timestamp(ts, 'Europe/London')
to_utc_timestamp(nt, 'UTC')
convert_timezone('Europe/London', 'America/New_York', nt)
convert_timezone('Asia/Tokyo', nt)
date_format(ts, 'yyyy-MM-dd HH:mm:ss')
date_format(ts, 'yyyy-MM-dd')
date_format(dt, 'yyyy/MM/dd')
date_format(nt, 'yyyyMMdd')
date_format(ts, 'HH:mm:ss.SSS')
date_format(ts, 'ss.SSSSSS')
date_format(ts, "yyyy-MM-dd'T'HH:mm")
date_format(ts, 'd.M.yyyy')
date_format(ts, 'E, dd MMM yyyy')
date_format(ts, 'EEEE MMMM')
date_format(ts, 'hh:mm a')
date_format(ts, 'yy DDD')
to_date(ts)
to_date(nt)
to_date(date_format(dt, 'yyyy-MM-dd'), 'yyyy-MM-dd')
to_date(date_format(dt, 'yyyyMMdd'), 'yyyyMMdd')
to_date(s, 'yyyy-MM-dd')
to_date('2023-02-29', 'yyyy-MM-dd')
to_date('2024-2-29', 'yyyy-MM-dd')
to_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss'), 'yyyy-MM-dd HH:mm:ss')
to_timestamp(date_format(nt, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm')
to_timestamp(date_format(nt, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), 'yyyy-MM-dd HH:mm:ss.SSSSSS')
to_timestamp_ntz(date_format(nt, 'yyyy-MM-dd HH:mm:ss'), 'yyyy-MM-dd HH:mm:ss')
to_timestamp(dt)
to_timestamp(nt)
try_to_timestamp(s, 'yyyy-MM-dd')
try_to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
try_to_timestamp(n, 'yyyy-MM-dd')
try_to_timestamp(date_format(dt, 'yyyy-MM-dd'), 'yyyy-MM-dd')
unix_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSS')
unix_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss'))
unix_timestamp(date_format(ts, 'yyyy-MM-dd'), 'yyyy-MM-dd')
-- plus and minus
dt + 3
3 + dt
dt + i2
dt - 40
dt - h
dt + INTERVAL 3 DAYS
dt + INTERVAL 1 WEEK
dt - INTERVAL '2' DAY
dt + INTERVAL 1 MONTH
dt - INTERVAL 1 YEAR
dt + INTERVAL '1-2' YEAR TO MONTH
dt + INTERVAL 5 HOURS
dt + INTERVAL '1 02:03:04' DAY TO SECOND
INTERVAL 2 MONTHS + dt
ts + INTERVAL 1 DAY
ts - INTERVAL 1 DAY
ts + INTERVAL 3 MONTHS
ts - INTERVAL 1 YEAR
ts + INTERVAL 1 HOUR
ts - INTERVAL 90 MINUTES
ts + INTERVAL 30 HOURS
ts - INTERVAL 30 HOURS
ts + INTERVAL '1.5' SECOND
ts + INTERVAL '1 02:03:04.5' DAY TO SECOND
ts - INTERVAL '200 02:03:04' DAY TO SECOND
ts + INTERVAL '-1 02:03:04' DAY TO SECOND
ts + INTERVAL '1-7' YEAR TO MONTH
INTERVAL 1 WEEK + ts
ts + INTERVAL 5 MILLISECONDS
ts + INTERVAL 7 MICROSECONDS
ts + INTERVAL 1 DAY 2 HOURS
nt + INTERVAL 1 DAY
nt + INTERVAL 1 MONTH
nt - INTERVAL 30 HOURS
nt - INTERVAL 4 YEARS
nt + INTERVAL '1 02:03:04.5' DAY TO SECOND
ts + -INTERVAL 1 DAY
dt - dt2
ts - ts2
nt - nt2
ts - dt
dt - ts
ts - nt
nt - ts
nt - dt
(dt - dt2) + (ts - ts2)
(ts - ts2) - INTERVAL 1 DAY
-(ts - ts2)
ts + (ts2 - ts)
nt + (nt2 - nt)
extract(DAY FROM ts - ts2)
extract(HOUR FROM ts - ts2)
extract(MINUTE FROM ts - ts2)
extract(SECOND FROM ts - ts2)
extract(DAY FROM dt - dt2)
INTERVAL 1 DAY
INTERVAL '1 02:03:04.5' DAY TO SECOND
INTERVAL -3 HOURS
-INTERVAL 2 DAYS
dt2 + INTERVAL 1 DAY > dt
ts2 - ts > INTERVAL 10 DAYS
(dt - dt2) = INTERVAL 0 DAYS
ts >= ts2 - INTERVAL 1 MONTH
-- constants, texts, and values of no type
year('2024-05-14')
to_date('2024-05-14')
to_timestamp('2024-05-14 10:00:00')
to_timestamp('2024-05-14 10:00:00', 'yyyy-MM-dd HH:mm:ss')
datediff('2024-05-14', dt)
date_trunc('month', DATE '2024-05-14')
DATE '2024-05-14' + INTERVAL 1 MONTH
TIMESTAMP '2024-10-26 02:30:00' + INTERVAL 1 DAY
TIMESTAMP '2024-10-27 02:30:00'
TIMESTAMP '2024-10-27 02:30:00' + INTERVAL 1 YEAR
TIMESTAMP_NTZ '2024-10-27 02:30:00' + INTERVAL 1 HOUR
hour('2024-05-14 13:45:01')
last_day('2024-02-01')
year(NULL)
date_add(NULL, 1)
year(s)
to_date(s)
date(ts)
date(s)
timestamp(dt)
timestamp(i)
make_timestamp(2024, 5, 14, 1, 2, 3.5)
make_timestamp(2024, 5, 14, 1, 2, m2)
make_timestamp_ntz(2024, 5, 14, 1, i2, 59.999999)
from_utc_timestamp(nt, 'Australia/Lord_Howe')
to_utc_timestamp(dt, 'America/Sao_Paulo')
dt BETWEEN DATE '2024-01-01' AND DATE '2024-01-01' + INTERVAL 1 YEAR
date_format(date_trunc('month', ts), 'yyyy-MM')
concat(year(ts), '-', lpad(month(ts), 2, '0'))
CASE WHEN ts IS NULL THEN 'none' ELSE date_format(ts, 'HH') END
