package report

import (
	"bytes"
	"embed"
	htmltemplate "html/template"
	"io"
	"strings"
	"text/template"

	"orrery/internal/text/humanize"
)

//go:embed *.tmpl
var templates embed.FS

//go:embed page.css
var style string

// Style returns the style sheet of all pages of the lab.
func Style() htmltemplate.CSS { return htmltemplate.CSS(style) } //nolint:gosec // ours

// HTML writes report.html as one file without scripts that needs no network.
func (r *Report) HTML(w io.Writer) error { return render(w, "page.html.tmpl", r.page()) }

// Markdown writes report.md.
func (r *Report) Markdown(w io.Writer) error { return render(w, "report.md.tmpl", r) }

// Text writes the answer for a terminal.
func (r *Report) Text(w io.Writer) error { return render(w, "report.txt.tmpl", r) }

// HTML writes the comparison as one file, like that of a report.
func (c *Comparison) HTML(w io.Writer) error { return render(w, "compare.html.tmpl", c.page()) }

// Markdown writes the comparison as Markdown.
func (c *Comparison) Markdown(w io.Writer) error { return render(w, "compare.md.tmpl", c) }

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error { return render(w, "compare.txt.tmpl", c) }

// templateFuncs are the functions of the templates. Texts that several templates use are in words.tmpl.
var templateFuncs = template.FuncMap{
	"aa": formatAABand, "code": indentCode, "ended": trimFullStop, "inc": func(i int) int { return i + 1 },
	"line": firstLine, "list": func(words []string) string { return strings.Join(words, "; ") }, "md": escapeMarkdown,
	"rounds": func(n int) string { return humanize.Plural(n, "round") }, "unbroken": nonBreaking,
}

// render executes the whole template before it writes anything.
func render(w io.Writer, name string, data any) error {
	var t interface{ Execute(io.Writer, any) error }
	var err error
	if strings.HasSuffix(name, ".html.tmpl") {
		t, err = htmltemplate.New(name).Funcs(templateFuncs).ParseFS(templates, name, "words.tmpl")
	} else {
		t, err = template.New(name).Funcs(templateFuncs).ParseFS(templates, name, "words.tmpl")
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// trimFullStop removes the full stop at the end of a text, where the page adds its own.
func trimFullStop(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

// indentCode indents a program's output, so that Markdown shows it unchanged.
func indentCode(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// nonBreaking keeps numbers and their units on one line.
func nonBreaking(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
