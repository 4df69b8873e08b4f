-- Macros of a connection made by iac_query.connect() or given to iac_query.load(). They are
-- temporary: nothing is written to the database.

-- Payloads of the rows for which a condition holds, NULL for the others. No row is decoded for
-- which it does not hold, whatever order DuckDB runs the conditions of a WHERE in:
--   WHERE iac_text_where(note_type = 'pathology', record) LIKE '%margin%'
CREATE OR REPLACE TEMP MACRO iac_text_where(condition, record) AS
    CASE WHEN condition THEN iac_text(record) END;
CREATE OR REPLACE TEMP MACRO iac_payload_where(condition, record) AS
    CASE WHEN condition THEN iac_payload(record) END;
