// Package draw draws the SVG of the lab's pages.
//
// Colours come from the classes of page.css, so that a drawing follows the reader's light or dark
// scheme and the printer.
package draw

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// A Drawing is an SVG image. Horizontal positions are percentages of its width, so that it fits any
// screen and its text keeps its size. Vertical positions are pixels. Colours come from CSS classes.
type Drawing struct {
	body   strings.Builder
	Height float64
}

// Rect draws a rectangle.
func (d *Drawing) Rect(class string, left, top, right, bottom float64) {
	fmt.Fprintf(&d.body, `<rect class="%s" x="%.2f%%" y="%.1f" width="%.2f%%" height="%.1f"/>`, class, left, top,
		max(0, right-left), max(0, bottom-top))
}

// Line draws a line.
func (d *Drawing) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.body, `<line class="%s" x1="%.2f%%" y1="%.1f" x2="%.2f%%" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// Dot draws a circle. Shapes (disc, square or ring) show the same as the colours.
func (d *Drawing) Dot(class string, x, y, radius float64) {
	fmt.Fprintf(&d.body, `<circle class="%s" cx="%.2f%%" cy="%.1f" r="%.1f"/>`, class, x, y, radius)
}

// Square draws a square.
func (d *Drawing) Square(class string, x, y, radius float64) {
	fmt.Fprintf(&d.body, `<svg x="%.2f%%" y="%.1f" overflow="visible"><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></svg>`,
		x, y, class, -radius, -radius, 2*radius, 2*radius)
}

// Text draws a text.
func (d *Drawing) Text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&d.body, `<text class="%s" text-anchor="%s" x="%.2f%%" y="%.1f">%s</text>`, class, anchor, x, y,
		html.EscapeString(text))
}

// Path draws connected points between top and bottom. Unlike in the other methods, both coordinates
// are from 0 to 100.
func (d *Drawing) Path(class, commands string, top, bottom float64) {
	fmt.Fprintf(&d.body, `<svg x="0" y="%.1f" width="100%%" height="%.1f" viewBox="0 0 100 100" preserveAspectRatio="none"><path class="%s" d="%s"/></svg>`,
		top, bottom-top, class, commands)
}

// SVG returns the element. The label describes the drawing for screen readers. Without a label, the
// drawing is hidden from them, because the page has the same information as text.
func (d *Drawing) SVG(label string) template.HTML {
	told := `aria-hidden="true"`
	if label != "" {
		told = fmt.Sprintf(`role="img" aria-label="%s"`, html.EscapeString(label))
	}
	return template.HTML(fmt.Sprintf(`<svg width="100%%" height="%.0f" %s>%s</svg>`, d.Height, told,
		d.body.String())) //nolint:gosec // escaped above
}
