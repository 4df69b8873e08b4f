-- What there is of the patients of whom a note mentions a word: tiles of one tissue, which a table
-- labels (tile_id, tissue) tells, and CT slices thinner than some mm. Of notes the text is decoded,
-- of scans one header a series, of images nothing.
--   SET VARIABLE notes = 'notes.iac'; SET VARIABLE word = 'margin';
--   SET VARIABLE tiles = 'tiles.iac'; SET VARIABLE tissue = 'tumour';
--   SET VARIABLE scans = 'scans/*.iac'; SET VARIABLE thickness = 3;
WITH patients AS (
    SELECT DISTINCT patient_id FROM iac_scan(getvariable('notes'))
    WHERE contains(lower(iac_text(record)), getvariable('word'))),
tissue AS (
    SELECT patient_id, count(*) AS tiles
    FROM iac_scan(getvariable('tiles')) JOIN labels USING (tile_id)
    WHERE labels.tissue = getvariable('tissue')
    GROUP BY patient_id),
series AS (
    SELECT patient_id, count(*) AS slices,
           iac_tag(arg_min(record, instance_number), 'SliceThickness')::DOUBLE AS thickness
    FROM iac_scan(getvariable('scans'))
    WHERE modality = 'CT' AND has_pixel_data
    GROUP BY patient_id, series_uid)
SELECT patient_id, tiles, slices, thickness
FROM patients JOIN tissue USING (patient_id) JOIN series USING (patient_id)
WHERE thickness < getvariable('thickness')
ORDER BY patient_id, thickness;
