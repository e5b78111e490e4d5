"""Objects that expire by rule: marked, tagged, and removed by the object store itself."""
