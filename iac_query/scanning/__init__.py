"""What scans of packs show, and which rows they give: one plan under every engine."""
