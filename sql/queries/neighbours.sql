-- The three vectors most like that of one item, among those of other patients: the vectors of the
-- same patient are left out before they are read. Among all: iac_neighbours(vector, pack, k).
--   SET VARIABLE pack = 'features.iac'; SET VARIABLE item = 'item-2';
WITH query AS MATERIALIZED (
    SELECT patient_id, iac_vector_double(record) AS vector
    FROM (SELECT patient_id, record FROM iac_scan(getvariable('pack'))
          WHERE item_id = getvariable('item') LIMIT 1)),
others AS (
    SELECT p.item_id, p.patient_id, iac_vector_double(p.record) AS vector, query.vector AS wanted
    FROM iac_scan(getvariable('pack')) AS p, query
    WHERE p.patient_id <> query.patient_id)
SELECT item_id, patient_id, round(iac_similarity(vector, wanted), 4) AS similarity
FROM others
ORDER BY similarity DESC NULLS LAST, item_id
LIMIT 3;
