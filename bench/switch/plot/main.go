// Command plot draws the outages that bench/switch/run has measured as an SVG. It has a dot for
// each switch and rollback, on a logarithmic scale.
//
//	go run ./bench/switch/plot < bench/switch/recorded.jsonl > docs/images/outage.svg
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"math"
	"os"
	"slices"
	"strings"
)

// A line is a line that bench/switch/run has written: the machine, or an outage.
type line struct {
	Part, Orrery, Date, Model, Kernel string
	Cpus                              int
	// for the machine, a number; for an outage, whether the host was kept busy
	Load       json.RawMessage
	Peer, What string
	N          int
	UDP        float64 // seconds
}

const (
	wide, left, right = 860, 210, 24
	top, row, gap     = 74, 24, 14
	least, most       = 0.001, 10.0 // seconds
)

var names = map[string]string{"orrery": "orrery switch", "lxc": "lxc-stop, lxc-start", "podman": "podman stop, start"}

const style = `
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", Arial, sans-serif; fill: #1f2328 }
.paper { fill: #ffffff } .title { font-size: 16px; font-weight: 600 } .small { font-size: 11px; fill: #57606a }
.grid { stroke: #d0d7de } .orrery { color: #0969da } .peer { color: #bc4c00 }
circle { fill: currentColor; fill-opacity: .55 } .median { stroke: currentColor; stroke-width: 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .small { fill: #9da7b3 } .grid { stroke: #30363d } .orrery { color: #58a6ff } .peer { color: #f0883e }
}
`

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// draw reads the measurements and writes the picture.
func draw(in io.Reader, out io.Writer) error {
	machine, rows, sizes, err := read(in)
	if err != nil {
		return err
	}
	var body strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&body, format+"\n", args...) }
	y := top
	var words []string
	for _, n := range sizes {
		for _, peer := range []string{"orrery", "lxc", "podman"} {
			outages := rows[key{peer, n}]
			if len(outages) == 0 {
				continue
			}
			slices.Sort(outages)
			middle := (outages[(len(outages)-1)/2] + outages[len(outages)/2]) / 2
			class := "peer"
			if peer == "orrery" {
				class = "orrery"
				put(`<text x="20" y="%d" font-weight="600">%s</text>`, y+4, nodes(n))
			}
			put(`<text x="%d" y="%d" text-anchor="end">%s</text><g class="%s">`, left-12, y+4, names[peer], class)
			for _, s := range outages {
				put(`<circle cx="%.1f" cy="%d" r="5"><title>%s</title></circle>`, at(s), y, duration(s))
			}
			put(`<path class="median" d="M%.1f %dv%d"/></g>`, at(middle), y-9, 18)
			words = append(words, fmt.Sprintf("%s, %s: median %s, worst %s.", nodes(n), names[peer], duration(middle),
				duration(outages[len(outages)-1])))
			y += row
		}
		y += gap
	}
	bottom := y - gap
	for _, s := range []float64{0.001, 0.01, 0.1, 1, 10} {
		put(`<path class="grid" d="M%.1f %dV%d"/><text class="small" x="%[1]f" y="%[4]d" text-anchor="middle">%[5]s</text>`,
			at(s), top-14, bottom, bottom+16, duration(s))
	}
	title := "How long a client gets no answer while nodes change to another release"
	_, err = fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title about">
<title id="title">%s</title>
<desc id="about">%s</desc>
<style>%s</style>
<rect class="paper" width="%[1]d" height="%[2]d"/>
<text class="title" x="20" y="26">%[3]s</text>
<text class="small" x="20" y="46">A dot for each switch and rollback: the longest time without an answer to UDP. The bar is the median. The scale is logarithmic.</text>
%[6]s<text class="small" x="20" y="%[7]d">%[8]s</text>
</svg>
`, wide, bottom+48, title, html.EscapeString(strings.Join(words, " ")), style, body.String(), bottom+38,
		html.EscapeString(machine))
	return err
}

type key struct {
	peer string
	n    int
}

// read returns the name of the machine, the outages of each peer and size, and the sizes.
func read(in io.Reader) (machine string, rows map[key][]float64, sizes []int, err error) {
	rows = map[key][]float64{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return "", nil, nil, err
		}
		switch {
		case l.Part == "machine":
			load := 0.0
			_ = json.Unmarshal(l.Load, &load)
			machine = fmt.Sprintf("bench/switch/run, Orrery %s, %s: %d × %s, Linux %s, load at the start %.1f", l.Orrery,
				l.Date, l.Cpus, l.Model, l.Kernel, load)
		case (l.What == "switch" || l.What == "rollback") && string(l.Load) != "true":
			rows[key{l.Peer, l.N}] = append(rows[key{l.Peer, l.N}], l.UDP)
			if !slices.Contains(sizes, l.N) {
				sizes = append(sizes, l.N)
			}
		}
	}
	slices.Sort(sizes)
	return machine, rows, sizes, nil
}

// at returns the position of a time on the scale.
func at(seconds float64) float64 {
	share := math.Log(min(max(seconds, least), most)/least) / math.Log(most/least)
	return left + share*(wide-left-right-20)
}

func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms", 1000*seconds)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
