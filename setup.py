"""Carries configs, notebooks and the small corpora into an installed package.

Everything else about the build stands in pyproject.toml. They lie beside the package in a checkout,
where people look for them; setuptools can only install what lies inside it. Editable installs read
them where they are (``rag_reliability.files.shipped``).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ASSETS = ("configs/*.yaml", "notebooks/*.ipynb", "corpus/*/*")


class WithAssets(build_py):
    """Copies what lies beside the package into ``rag_reliability/assets`` of what is built."""

    def run(self) -> None:
        """Build as ever, then copy; an editable install reads the originals."""
        super().run()
        if self.editable_mode:
            return
        root = Path(__file__).parent
        for source in sorted(path for pattern in ASSETS for path in root.glob(pattern)):
            target = Path(self.build_lib, "rag_reliability", "assets", source.relative_to(root))
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))


setup(cmdclass={"build_py": WithAssets})
