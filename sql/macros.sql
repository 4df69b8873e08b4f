-- Macros of a connection made by iac_query.connect() or given to iac_query.load(). They are
-- temporary: nothing is written to the database.

-- Payloads of the rows for which a condition holds, NULL for the others. No row is decoded for
-- which it does not hold, whatever order DuckDB runs the conditions of a WHERE in:
--   WHERE iac_text_where(note_type = 'pathology', record) LIKE '%margin%'
CREATE OR REPLACE TEMP MACRO iac_text_where(condition, record) AS
    CASE WHEN condition THEN iac_text(record) END;
CREATE OR REPLACE TEMP MACRO iac_payload_where(condition, record) AS
    CASE WHEN condition THEN iac_payload(record) END;

-- A number from 0 up to 1 that depends on the key alone: the same in every run, version and
-- machine. Another seed deals other numbers.
CREATE OR REPLACE TEMP MACRO iac_fraction(key, seed := '') AS
    md5_number_lower(seed || '/' || key::VARCHAR)::DOUBLE / 18446744073709551616;

-- 'train' or 'validation': all rows of one key, of a patient say, go to the same side.
CREATE OR REPLACE TEMP MACRO iac_split(key, validation := 0.2, seed := '') AS
    CASE WHEN iac_fraction(key, seed := seed) < validation THEN 'validation'
         WHEN key IS NOT NULL THEN 'train' END;

-- The cosine similarity of two vectors. One of zeros, or with NaN, has no direction: NULL.
CREATE OR REPLACE TEMP MACRO iac_similarity(a, b) AS
    CASE WHEN isfinite(list_dot_product(a, a) * list_dot_product(b, b))
          AND list_dot_product(a, a) * list_dot_product(b, b) > 0
         THEN list_cosine_similarity(a, b) END;

-- The k rows of a matrix pack whose vectors are most like the query vector, most similar first.
CREATE OR REPLACE TEMP MACRO iac_neighbours(query_vector, path, k) AS TABLE
    SELECT * EXCLUDE (iac_v, iac_q), iac_similarity(iac_v, iac_q) AS similarity
    FROM (SELECT *, iac_vector_double(record) AS iac_v, query_vector::DOUBLE[] AS iac_q
          FROM iac_scan(path))
    ORDER BY similarity DESC NULLS LAST, record.row
    LIMIT k;
