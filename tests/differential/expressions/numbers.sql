-- arithmetic
t + t
t + h
i + i2
i + l
i - l2
i * i2
l * l2
l + l2
f + f2
f * f2
f - i
d + d2
d - f
d * d2
d + i
i / i2
d / d2
f / f2
l / i2
i % i2
l % l2
d % d2
f % f2
i div i2
l div l2
-i
-l
-d
-f
-m
m + m2
m - m2
m * m2
m / m2
m % m2
m div m2
m + i
m * l
m / i
m + 1
m * 100
m - 0.5
m38 + m38
m38 - m
m38 * m38
m38 * m
m38 / m38
m38 / m
m / m38
m38 % m
m5 * m5
m5 / m5
m5 div i2
m + d
m * f
1 + 1
2147483647 + 1L
1.5 * 2.25
1 / 3
1.0 / 3.0
7 div 2
-7 % 3
5 % -3
m * m * m
(m + 1) * (m2 - 99999999.99)
m38 / 3
m / 7
m2 / 0.3
m38 div m
m38 % 7
9999999999.99 * 9999999999.99
-- text in arithmetic
i + n
n / 2
n * m
n + d
n % 3
-n
-- rounding, signs, bits, attempts, literals
power(d2, 2)
degrees(d)
radians(d)
sqrt(d)
sqrt(l)
rint(d)
sqrt(m)
ceil(d)
ceil(m)
floor(m)
ceil(i)
floor(f)
ceil(m, 1)
round(d)
round(d, 1)
round(d, -1)
round(f, 1)
round(f)
round(m)
round(m, 1)
round(m, -1)
round(m, 5)
round(m38, 3)
round(i)
round(i, -1)
round(l, -2)
round(i, 2)
bround(d)
bround(d, 1)
bround(m, 1)
bround(m)
bround(i, -1)
bround(f, 1)
abs(i2)
abs(l2)
abs(d)
abs(f)
abs(m)
abs(t)
sign(d)
signum(i)
signum(m)
sign(f)
positive(i)
pmod(i, i2)
pmod(i, 7)
pmod(d, d2)
pmod(d, 3)
pmod(m, m2)
pmod(m, 7)
pmod(l, -7)
pmod(f, 3)
mod(i, 3)
try_add(i, i2)
try_add(l, l2)
try_add(d, d2)
try_add(m, m2)
try_subtract(l, 1)
try_subtract(t, t)
try_multiply(l, l)
try_multiply(i, i)
try_divide(i, i2)
try_divide(d, d2)
try_divide(m, m2)
try_mod(i, i2)
try_mod(d, d2)
try_mod(m, m2)
i & i2
i | l
t ^ h
~i
~l
~t
i << 2
shiftleft(i, 33)
shiftleft(l, i2)
shiftright(i, 2)
shiftright(l, 3)
shiftrightunsigned(i, 2)
i >> 1
bit_count(i)
bit_count(l)
bit_count(t)
bit_count(b)
factorial(i)
factorial(i2)
width_bucket(d, 0, 100, 10)
width_bucket(d, 100, 0, 10)
width_bucket(d, d2, 100, i2)
pi()
e()
getbit(i, 3)
bin(l)
hex(l)
hex(i)
hex(s)
hex(y)
ceil(CAST('NaN' AS DOUBLE))
floor(CAST('inf' AS DOUBLE))
ceil(9.3e18D)
ceil(9.223372036854775807e18D)
ceil(-9.223372036854775808e18D)
floor(-9.223372036854777e18D)
ceil(m5)
floor(m38)
round(m5, 0)
round(m38)
round(m38, 10)
round(d * 1e-7, 8)
round(d * 1e17, 2)
bround(d / 3, 2)
round(d / 3, 3)
bround(m38, 4)
bround(m, -1)
round(f / 3, 2)
round(CAST(d / 3 AS FLOAT), 2)
round(t, -1)
round(n, 1)
ceil(n)
abs(n)
sqrt(n)
round(1.005D, 2)
round(2.675D, 2)
round(-0.4D)
round(0.15D, 1)
round(1234567.891D, -3)
pmod(-7, 3)
pmod(-7, -3)
pmod(-5, -2147483648)
pmod(CAST(-100 AS TINYINT), CAST(-128 AS TINYINT))
power(l, 2)
power(d, 2.0)
1.5BD + 1
1Y + 1S
1.5D
1.5F
0.1D
0.1F
1e3
1.0e-3
123456789012
12345678901234567890
.5
5.
0.10
100.00
-1.50
-2147483648
-9223372036854775808
2147483648
1L
X'1F'
3BD
1e2BD
hex(-1)
try_divide(i, 0)
try_add(1, i / 0)
m + n
m38 + 1
m * 0.5
m * 1.10
l * 1.5
i * 2.5
i + 1.5
l / 2.5
i / 3.0
t * 1.5
d * 1.5
m / 100
m5 % 7
t % 3
h div 7
t + 1
t * 2
h - 1
i + 1L
l + 1
f + 1
f * 2.5
f / 2
f % 3
m + f
(m + m2) / 2
(m * m2) / 3
m * i / 100
i / 0
i % 0
i div 0
m / 0
d / 0
1 / 0
