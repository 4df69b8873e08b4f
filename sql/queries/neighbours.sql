-- The three vectors most like that of one item, among those of other patients: the vectors of the
-- same patient are left out before they are read. All items: iac_neighbours(vector, pack, k).
--   SET VARIABLE pack = 'features.iac'; SET VARIABLE item = 'item-2';
WITH query AS MATERIALIZED (
    SELECT patient_id, iac_vector_double(record) AS vector
    FROM (SELECT patient_id, record FROM iac_scan(getvariable('pack'))
          WHERE item_id = getvariable('item') LIMIT 1))
SELECT p.item_id, p.patient_id,
       round(iac_similarity(iac_vector_double(p.record), query.vector), 4) AS similarity
FROM iac_scan(getvariable('pack')) AS p, query
WHERE p.patient_id <> query.patient_id
ORDER BY similarity DESC NULLS LAST, p.item_id
LIMIT 3;
