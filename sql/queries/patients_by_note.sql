-- The patients of one institution of whom a note of one type mentions a word, and when first. The
-- condition on the index stands in CASE before iac_docs, so that no other patient is decoded.
--   SET VARIABLE pack = 'patients.iac'; SET VARIABLE institution = 'north';
--   SET VARIABLE doc_type = 'pathology'; SET VARIABLE word = 'margin';
SELECT patient_id, count(*) AS notes, min(doc.doc_timestamp) AS first
FROM (SELECT patient_id,
             UNNEST(CASE WHEN institution = getvariable('institution')
                         THEN iac_docs(record) END) AS doc
      FROM iac_scan(getvariable('pack')))
WHERE doc.doc_type = getvariable('doc_type') AND contains(lower(doc.text), getvariable('word'))
GROUP BY patient_id
ORDER BY patient_id;
