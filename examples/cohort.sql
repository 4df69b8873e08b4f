-- The tumour tiles of the patients whose pathology report finds vascular invasion, those first
-- that look most like the first of them. No image is decoded.
CREATE OR REPLACE TEMP TABLE cohort AS
WITH
patients AS (
    SELECT DISTINCT patient_id
    FROM (SELECT patient_id, UNNEST(iac_docs(record)) AS doc FROM 'notes.iac')
    WHERE doc.doc_type = 'pathology' AND doc.text LIKE '%ascular invasion is present%'),
tumour AS (
    SELECT tiles.*, iac_vector_double(features.record) AS vector
    FROM 'tiles.iac' AS tiles
    SEMI JOIN patients USING (patient_id)
    JOIN 'labels.csv' AS labels USING (tile_id)
    JOIN 'features.iac' AS features USING (tile_id)
    WHERE labels.tissue = 'tumour')
SELECT * EXCLUDE vector,
       iac_similarity(vector, first_value(vector) OVER (ORDER BY tile_id)) AS similarity
FROM tumour
ORDER BY similarity DESC, tile_id
LIMIT 12;
