-- The three middle slices of each CT series thinner than 3 mm, with the range and mean of their
-- Hounsfield units and the share of pixels that are bone (above 300). Pixels are decoded of these
-- slices only.
--   SET VARIABLE pack = 'series.iac';  -- or 'dicom/*.iac'
WITH slices AS (
    SELECT patient_id, series_uid, instance_number, record,
           row_number() OVER series AS number, count(*) OVER (PARTITION BY series_uid) AS slices
    FROM iac_scan(getvariable('pack'))
    WHERE modality = 'CT' AND has_pixel_data
    WINDOW series AS (PARTITION BY series_uid ORDER BY instance_number, sop_instance_uid)),
thin AS (
    SELECT series_uid FROM slices
    WHERE number = 1 AND iac_tag(record, 'SliceThickness')::DOUBLE < 3),
middle AS (
    SELECT patient_id, series_uid, instance_number, iac_hu(record).data AS hu
    FROM (SELECT * FROM slices JOIN thin USING (series_uid)
          WHERE abs(2 * number - slices - 1) <= 2))
SELECT patient_id, instance_number, list_min(hu) AS lowest, round(list_avg(hu), 1) AS mean,
       list_max(hu) AS highest,
       round(len(list_filter(hu, lambda value: value > 300)) / len(hu), 3) AS bone
FROM middle
ORDER BY patient_id, series_uid, instance_number;
