"""
The functions of the package `comet`: they return values, and print nothing.

* `functions` are what `import comet` offers.
* Programs: `source`, `plugins`, `program`, `compiled`, `loading`; `pricing` of
  compiled ones.
* Searches: `question` and `exploring`, or `sampling`; `answer`, `saved`, `verifying`.
* Helpers: `choices` of words, `versions`; `html`, `notebook`.
"""
