"""The shop's own database: its tables, what stands in them on the first day, and the people who use it.

Customers move, orders are placed, changed, paid, shipped and cancelled, and in the middle of the day somebody adds a
column. Every step is one transaction. Numbers come from one seed, so two runs do the same work.
"""

from __future__ import annotations

import random
from typing import Any

TABLES = """
CREATE TABLE customers (
    id bigint PRIMARY KEY, name text NOT NULL, city varchar(40), since date, notes jsonb);
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer_id bigint NOT NULL, status varchar(12) NOT NULL, total numeric(12, 2) NOT NULL,
    version int NOT NULL, placed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE order_lines (
    order_id bigint, line int, product text NOT NULL, quantity int NOT NULL, price numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, line));
CREATE TABLE shipments (
    order_id bigint PRIMARY KEY, carrier text NOT NULL, weight_kg double precision, version int NOT NULL);
"""
FIRST_DAY = """
INSERT INTO customers SELECT i, 'Customer ' || i, (ARRAY['Ankara', 'Bergen', 'Cusco', 'Dakar'])[1 + i % 4],
    date '2020-01-01' + i, jsonb_build_object('vip', i % 10 = 0) FROM generate_series(1, {customers}) AS i;
INSERT INTO orders SELECT i, 1 + i % {customers}, 'new', 0, 1, now() FROM generate_series(1, {orders}) AS i;
INSERT INTO order_lines SELECT o, n, (ARRAY['kettle', 'lamp', 'chair', 'rug', 'clock'])[1 + (o + n) % 5], 1 + o % 3,
    (5 + (o * 7 + n) % 90)::numeric + 0.99 FROM generate_series(1, {orders}) AS o, generate_series(1, 2) AS n;
UPDATE orders SET total = (SELECT sum(quantity * price) FROM order_lines WHERE order_id = orders.id);
"""
NEW_COLUMN = "ALTER TABLE orders ADD COLUMN channel text NOT NULL DEFAULT 'web'"

PRODUCTS = ("kettle", "lamp", "chair", "rug", "clock")
CITIES = ("Ankara", "Bergen", "Cusco", "Dakar", "Espoo")


class Shop:
    """What people do. Holds a psycopg connection; `work` is one of their transactions."""

    def __init__(self, connection: Any, customers: int = 500, orders: int = 2_000, seed: int = 7) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._customers = customers
        self._next_order = orders + 1
        self._open = list(range(1, orders + 1))
        self._has_channel = False
        self.transactions = 0

    def open_doors(self) -> None:
        """The tables, and what is in them on the first day."""
        orders = self._next_order - 1
        for statement in (TABLES + FIRST_DAY.format(customers=self._customers, orders=orders)).split(";\n"):
            if statement.strip():
                self._connection.execute(statement)

    def add_channel(self) -> None:
        """A new column, in the middle of the day."""
        self._connection.execute(NEW_COLUMN)
        self._has_channel = True

    def work(self) -> None:
        """One transaction."""
        action = self._random.choices(
            [self._place, self._change_line, self._pay, self._ship, self._cancel, self._move],
            [4, 3, 2, 2, 1, 1],
        )[0]
        with self._connection.transaction():
            action()
        self.transactions += 1

    def _place(self) -> None:
        order, count = self._next_order, self._random.randint(1, 4)
        self._next_order += 1
        customer = self._random.randint(1, self._customers)
        self._run("INSERT INTO orders VALUES (%s, %s, 'new', 0, 1)", order, customer)
        if self._has_channel and self._random.random() < 0.5:
            self._run("UPDATE orders SET channel = 'shop' WHERE id = %s", order)
        for line in range(1, count + 1):
            product, quantity = self._random.choice(PRODUCTS), self._random.randint(1, 5)
            price = f"{self._random.randint(5, 99)}.90"
            self._run("INSERT INTO order_lines VALUES (%s, %s, %s, %s, %s)", order, line, product, quantity, price)
        self._total(order)
        self._open.append(order)

    def _change_line(self) -> None:
        order = self._random.choice(self._open)
        self._run("UPDATE order_lines SET quantity = quantity + 1 WHERE order_id = %s AND line = 1", order)
        self._total(order)

    def _pay(self) -> None:
        order = self._random.choice(self._open)
        self._run("UPDATE orders SET status = 'paid', version = version + 1 WHERE id = %s", order)

    def _ship(self) -> None:
        order = self._take_open()
        carrier, weight = self._random.choice(["bike", "van", "train"]), self._random.randint(1, 400) / 10
        self._run("UPDATE orders SET status = 'shipped', version = version + 1 WHERE id = %s", order)
        self._run("INSERT INTO shipments VALUES (%s, %s, %s, 1)", order, carrier, weight)

    def _cancel(self) -> None:
        order = self._take_open()
        self._run("DELETE FROM order_lines WHERE order_id = %s", order)
        self._run("DELETE FROM orders WHERE id = %s", order)

    def _move(self) -> None:
        customer, city = self._random.randint(1, self._customers), self._random.choice(CITIES)
        self._run("UPDATE customers SET city = %s WHERE id = %s", city, customer)

    def _take_open(self) -> int:
        place = self._random.randrange(len(self._open))
        self._open[place], self._open[-1] = self._open[-1], self._open[place]
        return self._open.pop()

    def _total(self, order: int) -> None:
        self._run(
            "UPDATE orders SET version = version + 1,"
            " total = (SELECT coalesce(sum(quantity * price), 0) FROM order_lines WHERE order_id = id) WHERE id = %s",
            order,
        )

    def _run(self, statement: str, *arguments: Any) -> None:
        self._connection.execute(statement, arguments)
