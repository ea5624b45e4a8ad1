"""TPC-H's tables, filled by Spark from nothing but row numbers: the same seed gives the same rows, in any order.

Every column is a function of its row's number and of a hash, so that rows are made where they are used and none pass
the driver. Schema, sizes, keys, value lists and the dependencies between columns (retail prices, ship dates after
order dates, an order's status and price from its lines) follow the specification; its grammar for comments does not:
comments are short, with the phrases that queries look for at about the specified rates.
"""

# ruff: noqa: E501 -- an expression of SQL stands on one line

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

SCHEMA: dict[str, str] = {
    "region": "r_regionkey int NOT NULL PRIMARY KEY, r_name varchar, r_comment varchar",
    "nation": "n_nationkey int NOT NULL PRIMARY KEY, n_name varchar, n_regionkey int, n_comment varchar",
    "supplier": "s_suppkey int NOT NULL PRIMARY KEY, s_name varchar, s_address varchar, s_nationkey int, s_phone varchar,"
    " s_acctbal numeric(15,2), s_comment varchar",
    "customer": "c_custkey int NOT NULL PRIMARY KEY, c_name varchar, c_address varchar, c_nationkey int, c_phone varchar,"
    " c_acctbal numeric(15,2), c_mktsegment varchar, c_comment varchar",
    "part": "p_partkey int NOT NULL PRIMARY KEY, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size int,"
    " p_container varchar, p_retailprice numeric(15,2), p_comment varchar",
    "partsupp": "ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int, ps_supplycost numeric(15,2), ps_comment varchar,"
    " PRIMARY KEY (ps_partkey, ps_suppkey)",
    "orders": "o_orderkey bigint NOT NULL PRIMARY KEY, o_custkey int, o_orderstatus varchar, o_totalprice numeric(15,2),"
    " o_orderdate date, o_orderpriority varchar, o_clerk varchar, o_shippriority int, o_comment varchar",
    "lineitem": "l_orderkey bigint NOT NULL, l_partkey int, l_suppkey int, l_linenumber int NOT NULL, l_quantity numeric(15,2),"
    " l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag varchar,"
    " l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar,"
    " l_shipmode varchar, l_comment varchar, PRIMARY KEY (l_orderkey, l_linenumber)",
}

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon"
    " chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro"
    " ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon"
    " medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder"
    " puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle"
    " tomato turquoise violet wheat white yellow"
).split()
_SIZES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_BOX_SIZES = ("SM", "MED", "JUMBO", "WRAP", "LG")
_BOXES = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_WORDS = ("quickly", "ironic", "pending", "deposits", "sleep", "furiously", "even", "accounts", "bold", "packages")

_FIRST_DAY = "DATE '1992-01-01'"
_ORDER_DAYS = 2406  # up to 151 days before the end of 1998
_TODAY = "DATE '1995-06-17'"
_LINES_MAX = 7


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rows, and the seed. Orders are counted before refreshes add to them."""

    suppliers: int
    customers: int
    parts: int
    orders: int
    seed: int = 1

    @staticmethod
    def of_scale(factor: float, seed: int = 1) -> Sizes:
        return Sizes(
            max(25, int(10_000 * factor)),
            max(30, int(150_000 * factor)),
            max(20, int(200_000 * factor)),
            max(50, int(1_500_000 * factor)),
            seed,
        )


def order_key(number: int) -> int:
    """The key of the nth order, from 0: the first 8 of every 32 numbers are used."""
    return number // 8 * 32 + number % 8 + 1


def order_number(key: int) -> int:
    """The number of the order with a key."""
    return (key - 1) // 32 * 8 + (key - 1) % 32


class Generator:
    """Frames of rows. `orders` and `lineitem` are asked for by a range of order numbers, from 0."""

    def __init__(self, spark: SparkSession, sizes: Sizes) -> None:
        self._spark = spark
        self.sizes = sizes

    def table(self, name: str) -> DataFrame:
        """A table as it is before any refresh."""
        match name:
            case "region":
                return self._listed("r_regionkey int, r_name string, r_comment string", enumerate(_REGIONS))
            case "nation":
                rows = ((number, name, region) for number, (name, region) in enumerate(_NATIONS))
                return self._listed("n_nationkey int, n_name string, n_regionkey int, n_comment string", rows)
            case "supplier":
                return self._supplier()
            case "customer":
                return self._customer()
            case "part":
                return self._part()
            case "partsupp":
                return self._partsupp()
            case "orders":
                return self.orders(0, self.sizes.orders)
            case "lineitem":
                return self.lineitem(0, self.sizes.orders)
            case _:
                raise ValueError(name)

    def orders(self, first: int, last: int) -> DataFrame:
        line_price = f"({self._quantity('i')} * {self._retail(self._line_part('i'))}) / 100"
        charged = f"({line_price} * (100 + {self._tax('i')}) * (100 - {self._discount('i')})) / 10000"
        total = f"aggregate(sequence(1, lines), 0D, (sum, i) -> sum + {charged})"
        shipped = f"{self._ship_day('i')} <= {_TODAY}"
        status = (
            f"CASE WHEN forall(sequence(1, lines), i -> {shipped}) THEN 'F'"
            f" WHEN exists(sequence(1, lines), i -> {shipped}) THEN 'P' ELSE 'O' END"
        )
        comment = (
            f"CASE WHEN {self._number('o_special', 1, 100, 'okey')} = 1"
            f" THEN concat('special ', {self._words('oc', 'okey', 1)}, ' requests') ELSE {self._words('oc', 'okey')} END"
        )
        return self._spark.sql(
            f"SELECT okey AS o_orderkey, {self._buyer()} AS o_custkey, {status} AS o_orderstatus,"
            f" cast({total} AS decimal(15,2)) AS o_totalprice, day AS o_orderdate,"
            f" {self._one_of(_PRIORITIES, 'o_priority', 'okey')} AS o_orderpriority,"
            f" concat('Clerk#', lpad({self._number('o_clerk', 1, max(1, self.sizes.orders // 1500), 'okey')}, 9, '0'))"
            f" AS o_clerk, 0 AS o_shippriority, {comment} AS o_comment FROM ({self._numbered(first, last)})"
        )

    def lineitem(self, first: int, last: int) -> DataFrame:
        lines = (
            f"SELECT *, {self._ship_day('i')} AS shipped, {self._line_part('i')} AS part, {self._quantity('i')} AS quantity"
            f" FROM (SELECT *, explode(sequence(1, lines)) AS i FROM ({self._numbered(first, last)}))"
        )
        received = f"date_add(shipped, {self._number('l_receipt', 1, 30, 'okey', 'i')})"
        supplier = self._part_supplier("part", self._number("l_supp", 0, 3, "okey", "i"))
        returned = (
            f"CASE WHEN {received} > {_TODAY} THEN 'N' ELSE {self._one_of(('R', 'A'), 'l_return', 'okey', 'i')} END"
        )
        return self._spark.sql(
            f"SELECT okey AS l_orderkey, part AS l_partkey, {supplier} AS l_suppkey, i AS l_linenumber,"
            f" cast(quantity AS decimal(15,2)) AS l_quantity,"
            f" cast(cast(quantity * {self._retail('part')} AS decimal(15,0)) / 100 AS decimal(15,2)) AS l_extendedprice,"
            f" cast({self._discount('i')} / 100 AS decimal(15,2)) AS l_discount,"
            f" cast({self._tax('i')} / 100 AS decimal(15,2)) AS l_tax,"
            f" {returned} AS l_returnflag, CASE WHEN shipped > {_TODAY} THEN 'O' ELSE 'F' END AS l_linestatus,"
            f" shipped AS l_shipdate, date_add(day, {self._number('l_commit', 30, 90, 'okey', 'i')}) AS l_commitdate,"
            f" {received} AS l_receiptdate, {self._one_of(_INSTRUCTIONS, 'l_instruct', 'okey', 'i')} AS l_shipinstruct,"
            f" {self._one_of(_MODES, 'l_mode', 'okey', 'i')} AS l_shipmode,"
            f" {self._words('lc', 'okey')} AS l_comment FROM ({lines})"
        )

    # --- tables that do not change -------------------------------------------------------------------

    def _supplier(self) -> DataFrame:
        odd = self._number("s_odd", 1, 2000, "k")  # 5 of 10,000 complain, 5 recommend
        comment = (
            f"CASE WHEN {odd} = 1 THEN 'slyly Customer even Complaints' WHEN {odd} = 2 THEN 'Customer bold Recommends'"
            f" ELSE {self._words('sc', 'k')} END"
        )
        nation = self._number("s_nation", 0, 24, "k")
        return self._spark.sql(
            f"SELECT k AS s_suppkey, concat('Supplier#', lpad(k, 9, '0')) AS s_name, {self._words('sa', 'k', 2)}"
            f" AS s_address, {nation} AS s_nationkey, {self._phone(nation, 's')} AS s_phone,"
            f" {self._money('s_bal', -99999, 999999)} AS s_acctbal, {comment} AS s_comment"
            f" FROM ({self._keys(self.sizes.suppliers)})"
        )

    def _customer(self) -> DataFrame:
        nation = self._number("c_nation", 0, 24, "k")
        return self._spark.sql(
            f"SELECT k AS c_custkey, concat('Customer#', lpad(k, 9, '0')) AS c_name, {self._words('ca', 'k', 2)}"
            f" AS c_address, {nation} AS c_nationkey, {self._phone(nation, 'c')} AS c_phone,"
            f" {self._money('c_bal', -99999, 999999)} AS c_acctbal,"
            f" {self._one_of(_SEGMENTS, 'c_segment', 'k')} AS c_mktsegment, {self._words('cc', 'k')} AS c_comment"
            f" FROM ({self._keys(self.sizes.customers)})"
        )

    def _part(self) -> DataFrame:
        name = ", ".join(self._one_of(_COLOURS, f"p_name{n}", "k") for n in range(5))
        kind = ", ".join(self._one_of(each, f"p_type{n}", "k") for n, each in enumerate((_SIZES, _FINISHES, _METALS)))
        maker = self._number("p_mfgr", 1, 5, "k")
        box = f"{self._one_of(_BOX_SIZES, 'p_box', 'k')}, {self._one_of(_BOXES, 'p_case', 'k')}"
        return self._spark.sql(
            f"SELECT k AS p_partkey, concat_ws(' ', {name}) AS p_name, concat('Manufacturer#', {maker}) AS p_mfgr,"
            f" concat('Brand#', {maker}, {self._number('p_brand', 1, 5, 'k')}) AS p_brand,"
            f" concat_ws(' ', {kind}) AS p_type, {self._number('p_size', 1, 50, 'k')} AS p_size,"
            f" concat_ws(' ', {box}) AS p_container, cast({self._retail('k')} / 100 AS decimal(15,2)) AS p_retailprice,"
            f" {self._words('pc', 'k')} AS p_comment FROM ({self._keys(self.sizes.parts)})"
        )

    def _partsupp(self) -> DataFrame:
        keys = f"SELECT k, explode(sequence(0, 3)) AS n FROM ({self._keys(self.sizes.parts)})"
        return self._spark.sql(
            f"SELECT k AS ps_partkey, {self._part_supplier('k', 'n')} AS ps_suppkey,"
            f" {self._number('ps_qty', 1, 9999, 'k', 'n')} AS ps_availqty,"
            f" cast({self._number('ps_cost', 100, 100000, 'k', 'n')} / 100 AS decimal(15,2)) AS ps_supplycost,"
            f" {self._words('psc', 'k')} AS ps_comment FROM ({keys})"
        )

    # --- columns -------------------------------------------------------------------------------------

    def _numbered(self, first: int, last: int) -> str:
        """Orders by number: their keys, days and numbers of lines."""
        return (
            "SELECT okey, date_add(" + _FIRST_DAY + f", {self._number('o_day', 0, _ORDER_DAYS - 1, 'okey')}) AS day,"
            f" {self._number('o_lines', 1, _LINES_MAX, 'okey')} AS lines"
            f" FROM (SELECT id DIV 8 * 32 + id % 8 + 1 AS okey FROM range({first}, {last}))"
        )

    def _keys(self, count: int) -> str:
        return f"SELECT cast(id + 1 AS int) AS k FROM range({count})"

    def _hash(self, stream: str, *keys: str) -> str:
        return f"xxhash64({', '.join(keys)}, '{stream}', {self.sizes.seed})"

    def _number(self, stream: str, low: int, high: int, *keys: str) -> str:
        """A whole number, evenly from low to high."""
        return f"cast({low} + pmod({self._hash(stream, *keys)}, {high - low + 1}) AS int)"

    def _one_of(self, values: tuple[str, ...] | list[str], stream: str, *keys: str) -> str:
        listed = ", ".join(f"'{value}'" for value in values)
        return f"array({listed})[cast(pmod({self._hash(stream, *keys)}, {len(values)}) AS int)]"

    def _words(self, stream: str, key: str, count: int = 3) -> str:
        return "concat_ws(' ', " + ", ".join(self._one_of(_WORDS, f"{stream}{n}", key) for n in range(count)) + ")"

    def _money(self, stream: str, low: int, high: int) -> str:
        return f"cast({self._number(stream, low, high, 'k')} / 100 AS decimal(15,2))"

    def _phone(self, nation: str, stream: str) -> str:
        parts = [f"cast({nation} + 10 AS string)"]
        parts += [f"cast({self._number(f'{stream}_phone{n}', low, high, 'k')} AS string)"
                  for n, (low, high) in enumerate(((100, 999), (100, 999), (1000, 9999)))]  # fmt: skip
        return f"concat_ws('-', {', '.join(parts)})"

    def _retail(self, part: str) -> str:
        """A part's price in cents."""
        return f"(90000 + ({part} DIV 10) % 20001 + 100 * ({part} % 1000))"

    def _part_supplier(self, part: str, number: str) -> str:
        """The nth of the four suppliers of a part, spread as the specification spreads them.

        The last remainder matters only where there are few suppliers: the four must differ.
        """
        count = self.sizes.suppliers
        step = f"{count} DIV 4 + (({part} - 1) DIV {count}) % {max(1, count // 12)}"
        return f"cast(({part} + {number} * ({step})) % {count} + 1 AS int)"

    def _buyer(self) -> str:
        """A customer; every third one never orders."""
        drawn = self._number("o_cust", 1, self.sizes.customers, "okey")
        return f"if({drawn} % 3 = 0, {drawn} - 1, {drawn})"

    def _line_part(self, line: str) -> str:
        return self._number("l_part", 1, self.sizes.parts, "okey", line)

    def _quantity(self, line: str) -> str:
        return self._number("l_qty", 1, 50, "okey", line)

    def _discount(self, line: str) -> str:
        return self._number("l_disc", 0, 10, "okey", line)

    def _tax(self, line: str) -> str:
        return self._number("l_tax", 0, 8, "okey", line)

    def _ship_day(self, line: str) -> str:
        return f"date_add(day, {self._number('l_ship', 1, 121, 'okey', line)})"

    def _listed(self, schema: str, rows: object) -> DataFrame:
        return self._spark.createDataFrame([(*row, "") for row in rows], schema)  # type: ignore[attr-defined]
