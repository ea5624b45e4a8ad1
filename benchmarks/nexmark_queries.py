"""Nexmark's queries q0 to q22 in RisingWave's dialect.

Where the original leaves ties open, they are broken here, so that there is one right answer.
"""

# ruff: noqa: E501 -- an expression of SQL stands on one line

from __future__ import annotations

_DAY = "to_char(date_time, 'YYYY-MM-DD')"
_RANKS = (
    "count(*) FILTER (WHERE price < 10000) AS rank1_bids,"
    " count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,"
    " count(*) FILTER (WHERE price >= 1000000) AS rank3_bids"
)


def _distinct(column: str, name: str) -> str:
    return (
        f"count(DISTINCT {column}) AS total_{name},"
        f" count(DISTINCT {column}) FILTER (WHERE price < 10000) AS rank1_{name},"
        f" count(DISTINCT {column}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{name},"
        f" count(DISTINCT {column}) FILTER (WHERE price >= 1000000) AS rank3_{name}"
    )


QUERIES: dict[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')""",
    "q4": """
SELECT q.category, avg(q.final) AS avg FROM (
  SELECT max(b.price) AS final, a.category FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category) q
GROUP BY q.category""",
    "q5": """
SELECT bids.auction, bids.num FROM (
  SELECT auction, count(*) AS num, window_start AS starttime
  FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start) AS bids
JOIN (
  SELECT max(counted.num) AS maxn, counted.starttime FROM (
    SELECT count(*) AS num, window_start AS starttime
    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start) AS counted
  GROUP BY counted.starttime) AS most
ON bids.starttime = most.starttime AND bids.num >= most.maxn""",
    "q6": """
SELECT q.seller, q.id, avg(q.final) OVER (PARTITION BY q.seller ORDER BY q.date_time, q.id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS avg
FROM (
  SELECT id, seller, price AS final, bid_time AS date_time FROM (
    SELECT a.id, a.seller, b.price, b.date_time AS bid_time,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS rn
    FROM auction a, bid b WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) AS ranked
  WHERE rn <= 1) AS q""",
    "q7": """
SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b
JOIN (
  SELECT max(price) AS maxprice, window_end AS date_time
  FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) b1
ON b.price = b1.maxprice
WHERE b.date_time BETWEEN b1.date_time - INTERVAL '10' SECOND AND b1.date_time""",
    "q8": """
SELECT p.id, p.name, p.starttime FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TUMBLE(person, date_time, INTERVAL '10' SECOND) GROUP BY id, name, window_start, window_end) p
JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND) GROUP BY seller, window_start, window_end) a
ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime""",
    "q9": """
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, auction, bidder, price,
       bid_date_time
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time,
         row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS rownum
  FROM auction a, bid b WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) tmp
WHERE rownum <= 1""",
    "q10": f"SELECT auction, bidder, price, date_time, {_DAY} AS date, to_char(date_time, 'HH24:MI') AS time FROM bid",
    "q11": """
SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime, max(date_time) AS endtime FROM (
  SELECT bidder, date_time, first_value(date_time)
           OVER (PARTITION BY bidder ORDER BY date_time SESSION WITH GAP INTERVAL '10 seconds') AS starts
  FROM bid) AS marked
GROUP BY bidder, starts""",
    "q12": """
SELECT bidder, count(*) AS bid_count, window_start, window_end
FROM TUMBLE((SELECT *, proctime() AS p_time FROM bid), p_time, INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end""",
    "q13": """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input FOR SYSTEM_TIME AS OF PROCTIME() AS s ON b.auction % 1000 = s.key""",
    "q14": """
SELECT auction, bidder, 0.908 * price AS price,
       CASE WHEN extract(hour FROM date_time) >= 8 AND extract(hour FROM date_time) <= 18 THEN 'dayTime'
            WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS bidtimetype,
       date_time, length(extra) - length(replace(extra, 'C', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""
SELECT {_DAY} AS day, count(*) AS total_bids, {_RANKS}, {_distinct("bidder", "bidders")}, {_distinct("auction", "auctions")}
FROM bid GROUP BY {_DAY}""",
    "q16": f"""
SELECT channel, {_DAY} AS day, max(to_char(date_time, 'HH24:MI')) AS minute, count(*) AS total_bids, {_RANKS},
       {_distinct("bidder", "bidders")}, {_distinct("auction", "auctions")}
FROM bid GROUP BY channel, {_DAY}""",
    "q17": f"""
SELECT auction, {_DAY} AS day, count(*) AS total_bids, {_RANKS}, min(price) AS min_price, max(price) AS max_price,
       avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, {_DAY}""",
    "q18": """
SELECT auction, bidder, price, channel, url, date_time, extra FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC) AS rank_number FROM bid) AS ranked
WHERE rank_number <= 1""",
    "q19": """
SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder) AS rank_number FROM bid) AS ranked
WHERE rank_number <= 10""",
    "q20": """
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_date_time, b.extra AS bid_extra, a.item_name,
       a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller, a.category,
       a.extra AS auction_extra
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """
SELECT auction, bidder, price, channel,
       CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
            WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
            ELSE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] END AS channel_id
FROM bid
WHERE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] IS NOT NULL
   OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
       split_part(url, '/', 6) AS dir3
FROM bid""",
}
