package draw

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/report/trace"
)

// plotTrace draws a trace: a line for the mean of each bin and an area up to its maximum. The
// caption has the overall maximum.
func plotTrace(t trace.Trace) template.HTML {
	end := t.Points[len(t.Points)-1].At
	s := scaleOfTrace(t)
	top := t.Max()
	mean, most := t.Binned(end)
	d := &Drawing{Height: 80}
	const upper, lower = 14, 64
	for i, b := range t.Bands {
		left, right := 100*b.From/end, 100*min(1, b.To/end)
		if i%2 == 1 {
			d.Rect("band", left, upper-12, right, lower)
		}
		if right-left > 1.6*float64(len(b.Name)) { // approximate width of a small letter in a narrow chart
			d.Text("tick", "middle", (left+right)/2, upper-3, b.Name)
		}
	}
	d.Line("axis", 0, lower, 100, lower)
	var area, line strings.Builder
	area.WriteString("M0 100")
	pen := "M"
	for i := range mean {
		x := 100 * float64(i) / float64(len(mean)-1)
		fmt.Fprintf(&area, "L%.2f %.2f", x, 100-100*most[i]/top)
		if math.IsNaN(mean[i]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&line, "%s%.2f %.2f", pen, x, 100-100*mean[i]/top)
		pen = "L"
	}
	area.WriteString("L100 100Z")
	d.Path("area", area.String(), upper, lower)
	d.Path("stroke", line.String(), upper, lower)
	d.Text("tick", "start", 0, 77, "0 s")
	d.Text("tick", "end", 100, 77, fmt.Sprintf("%.0f s", end))
	return d.SVG(fmt.Sprintf("%s over %.0f s, at most %s", t.Name, end, s.Value(top)))
}

func scaleOfTrace(t trace.Trace) quantity.Scale {
	if t.Unit == "%" {
		return quantity.Scale{Factor: 1, Unit: "%"}
	}
	return quantity.ScaleOf(t.Unit, []float64{t.Max()})
}

// Traces draws what was recorded each second, with the maximum in each caption.
func Traces(all []trace.Trace) (charts []Chart) {
	for _, t := range all {
		charts = append(charts, Chart{t.Name + ", at most " + scaleOfTrace(t).Value(t.Max()), plotTrace(t)})
	}
	return charts
}
