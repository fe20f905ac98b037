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
