/* How the search of the site orders what it finds: as Sphinx does, but fields of data classes, which are many, come
   behind pages, and so does why something was decided. */
var Scorer = {
  score: ([docname, , , description, score]) => {
    if (docname.startsWith("decisions/")) return score / 4;
    return (description || "").includes("attribute") ? 1 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
