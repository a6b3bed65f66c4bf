"""The closed list of reasons, and the page that tells people what each means."""

from deploy.bootstrap.home import ROOT
from jobs.core.reasons import Code


def test_it_is_explained_in_the_documentation_word_for_word():
    told = (ROOT / "docs" / "concepts.md").read_text()
    assert [code.value for code in Code if f"`{code.value}`" not in told and code is not Code.FITS] == []
