"""The explorer's controls, laid out; they do nothing by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as w

from rag_reliability.explorer.render import rule_label, slider_label

NO_WINDOW = "none"
OWN = ""
_STYLE = {"description_width": "11em"}
_WIDE = w.Layout(width="100%", max_width="60em")
_FIELD = w.Layout(width="100%", max_width="32em")


def _heading(text: str) -> w.HTML:
    """A heading of ours: never text of a document."""
    return w.HTML(f'<div class="rr"><h4>{text}</h4></div>')


class Controls:
    """Every control by name, and ``box`` that holds them all."""

    def __init__(
        self,
        topics: Sequence[tuple[str, str]],
        table: Mapping[str, float],
        spreads: Sequence[str],
        rules: Sequence[str],
        windows: Sequence[int],
        k: int,
    ) -> None:
        self.topic = w.Dropdown(
            options=[*topics, ("a question of your own", OWN)],
            description="Topic", style=_STYLE, layout=_WIDE,
        )  # fmt: skip
        self.question = w.Text(
            placeholder="Type a question, then press Ask", description="Or ask",
            continuous_update=False, style=_STYLE, layout=_WIDE,
        )  # fmt: skip
        self.ask = w.Button(description="Ask", tooltip="Search the corpus with your question")
        self.rule = w.Dropdown(
            options=[(rule_label(r), r) for r in rules], value="source_aware",
            description="Rule", style=_STYLE, layout=_FIELD,
        )  # fmt: skip
        self.read = w.Button(
            description="Read stances",
            tooltip="Ask the model what each passage says; then the stance rules can be chosen",
            layout=w.Layout(width="auto"),
        )
        self.k = w.IntSlider(k, 1, 20, description="k, shown", style=_STYLE, layout=_FIELD)
        self.window = w.SelectionSlider(
            options=[*map(str, windows), NO_WINDOW], value=NO_WINDOW,
            description="Rank window", style=_STYLE, layout=_FIELD,
        )  # fmt: skip
        self.spread = w.Dropdown(
            options=[*spreads, "as set below"], description="Spread of λ", style=_STYLE,
            layout=_FIELD,
        )  # fmt: skip
        self.priors = {
            kind: w.FloatSlider(
                value, min=0.05, max=1.0, step=0.01, readout_format=".2f",
                description=slider_label(kind), style=_STYLE, layout=_FIELD,
            )
            for kind, value in table.items()
        }  # fmt: skip
        self._edit_controls(list(table))
        self.generate = w.Button(
            description="Generate both answers", button_style="primary",
            tooltip="Answer from similarity's top k and from the rule's", icon="comments",
            layout=w.Layout(width="auto"),
        )  # fmt: skip
        self.box = self._laid_out()

    def _edit_controls(self, kinds: list[str]) -> None:
        def button(text: str, tip: str) -> w.Button:
            return w.Button(description=text, tooltip=tip, layout=w.Layout(width="auto"))

        options = [(slider_label(kind), kind) for kind in kinds]
        self.document = w.Dropdown(description="Document", style=_STYLE, layout=_WIDE)
        self.as_type = w.Dropdown(
            options=options, description="declares", style=_STYLE, layout=_FIELD
        )
        self.spoof = button("Spoof its label", "It declares the source type chosen here")
        self.flip = button("Flip its verification", "Checked becomes unchecked, and back")
        self.remove = button("Remove it", "As if the corpus did not hold it")
        self.reset = button("Reset", "Every document as the corpus has it; your texts go")
        self.title = w.Text(description="Title", style=_STYLE, layout=_WIDE)
        self.text = w.Textarea(
            description="Your text", rows=4, style=_STYLE, layout=_WIDE,
            placeholder="A passage of your own; it is encoded once",
        )  # fmt: skip
        self.text_type = w.Dropdown(
            options=options, value=kinds[-1], description="declares", style=_STYLE, layout=_FIELD
        )
        self.text_verified = w.Checkbox(
            description="its source counts as checked", indent=False, layout=_FIELD
        )
        self.inject = button("Inject my text", "Encode it and let it compete")

    def _laid_out(self) -> w.Widget:
        row = w.Layout(flex_flow="row wrap", align_items="center", grid_gap="2px 8px")
        priors = w.VBox([_heading("Priors"), self.spread, *self.priors.values()])
        rules = w.VBox(
            [
                _heading("Rule"),
                self.rule,
                self.k,
                self.window,
                w.HBox([self.read, self.generate], layout=row),
            ]
        )
        columns = w.Layout(
            display="grid", grid_template_columns="repeat(auto-fit, minmax(300px, 1fr))",
            grid_gap="0 24px", width="100%",
        )  # fmt: skip
        edits = w.VBox(
            [
                w.HBox([self.document], layout=row),
                w.HBox([self.as_type, self.spoof], layout=row),
                w.HBox([self.flip, self.remove, self.reset], layout=row),
            ]
        )
        own = w.VBox(
            [self.title, self.text, w.HBox([self.text_type, self.text_verified, self.inject],
             layout=row)]
        )  # fmt: skip
        what_if = w.Accordion([edits, own], titles=("What if …", "Inject my own text"))
        what_if.selected_index = 0
        return w.VBox(
            [
                self.topic,
                w.HBox([self.question, self.ask], layout=row),
                w.Box([priors, rules], layout=columns),
                what_if,
            ]
        )
