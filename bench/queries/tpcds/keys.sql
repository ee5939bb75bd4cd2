-- The primary keys of TPC-DS's tables of sales, returns and stock (2.3), and the references between
-- them. Tables that its queries join them with do not change, so that references to those tell nothing.

ALTER TABLE store_sales ADD PRIMARY KEY (ss_item_sk, ss_ticket_number) NOT ENFORCED RELY;
ALTER TABLE catalog_sales ADD PRIMARY KEY (cs_item_sk, cs_order_number) NOT ENFORCED RELY;
ALTER TABLE web_sales ADD PRIMARY KEY (ws_item_sk, ws_order_number) NOT ENFORCED RELY;

ALTER TABLE store_returns ADD PRIMARY KEY (sr_item_sk, sr_ticket_number) NOT ENFORCED RELY;
ALTER TABLE store_returns ADD FOREIGN KEY (sr_item_sk, sr_ticket_number)
  REFERENCES store_sales NOT ENFORCED RELY;
ALTER TABLE catalog_returns ADD PRIMARY KEY (cr_item_sk, cr_order_number) NOT ENFORCED RELY;
ALTER TABLE catalog_returns ADD FOREIGN KEY (cr_item_sk, cr_order_number)
  REFERENCES catalog_sales NOT ENFORCED RELY;
ALTER TABLE web_returns ADD PRIMARY KEY (wr_item_sk, wr_order_number) NOT ENFORCED RELY;
ALTER TABLE web_returns ADD FOREIGN KEY (wr_item_sk, wr_order_number)
  REFERENCES web_sales NOT ENFORCED RELY;
ALTER TABLE inventory ADD PRIMARY KEY (inv_date_sk, inv_item_sk, inv_warehouse_sk)
  NOT ENFORCED RELY;
