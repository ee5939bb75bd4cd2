"""Six views over TPC-H: sums, joins, a filter, a ranking, an outer join, a view on a view."""

from __future__ import annotations

VIEWS: dict[str, str] = {
    # after TPC-H Q1
    "pricing_summary": """
        SELECT l_returnflag, l_linestatus,
               SUM(l_quantity) AS sum_qty,
               SUM(l_extendedprice) AS sum_base_price,
               SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
               SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
               AVG(l_quantity) AS avg_qty,
               AVG(l_discount) AS avg_disc,
               COUNT(*) AS count_order
        FROM lineitem
        WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus""",
    # a row per order, as in TPC-H Q3 and Q18
    "order_revenue": """
        SELECT o_orderkey, o_orderdate, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM orders
        JOIN lineitem ON l_orderkey = o_orderkey
        GROUP BY o_orderkey, o_orderdate""",
    # after TPC-H Q6
    "discount_forecast": """
        SELECT SUM(l_extendedprice * l_discount) AS revenue
        FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    # after TPC-H Q10, as a ranking
    "top_customers": """
        SELECT c_custkey, c_name, n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer
        JOIN orders ON c_custkey = o_custkey
        JOIN lineitem ON l_orderkey = o_orderkey
        JOIN nation ON c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, n_name
        ORDER BY revenue DESC
        LIMIT 100""",
    # the inner part of TPC-H Q13: customers without orders count, too
    "customer_orders": """
        SELECT c_custkey, COUNT(o_orderkey) AS order_count
        FROM customer
        LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
        GROUP BY c_custkey""",
    # a view over a view
    "revenue_by_month": """
        SELECT YEAR(o_orderdate) AS year, MONTH(o_orderdate) AS month,
               COUNT(*) AS orders, SUM(revenue) AS revenue
        FROM order_revenue
        GROUP BY YEAR(o_orderdate), MONTH(o_orderdate)""",
}
