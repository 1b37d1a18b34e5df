package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/test/capture"
)

// A Curve is the loss at each rate in a setting.
type Curve struct {
	Setting string  `json:"setting"`
	Points  []Point `json:"points"`
}

// A Point is one trial of a search.
type Point struct {
	Round int     `json:"round"`
	Rate  float64 `json:"rate"` // rate sent, in bit/s
	Lost  float64 `json:"lost"` // share of the heaps sent
}

// Drops says where packets were lost in a setting, in all rounds that count.
type Drops struct {
	Setting string      `json:"setting"`
	Places  []DropCount `json:"places"`
}

// A DropCount is one place where packets were lost, such as the socket buffer.
type DropCount struct {
	Place string `json:"place"`
	Count uint64 `json:"count"`
}

// Words returns all places in one line.
func (d Drops) Words() string {
	var parts []string
	for _, p := range d.Places {
		parts = append(parts, p.Place+" "+d.share(p.Count))
	}
	return strings.Join(parts, ", ")
}

// at returns how many packets were lost in a place.
func (d Drops) at(place string) uint64 {
	for _, p := range d.Places {
		if p.Place == place {
			return p.Count
		}
	}
	return 0
}

// share returns a number of packets and its share of all lost packets.
func (d Drops) share(count uint64) string {
	total := uint64(0)
	for _, p := range d.Places {
		total += p.Count
	}
	return fmt.Sprintf("%s (%.0f %%)", quantity.Thousands(count), 100*float64(count)/float64(max(1, total)))
}

// dropPlaces returns the places where packets can be lost, in the order of their way.
func dropPlaces() [][2]string {
	return [][2]string{{"sender", "sender"}, {"nic", "ring of the NIC"}, {"softnet", "softnet backlog"},
		{"link", "bridge or veth"},
		{"ip", "IP fragments"}, {"socket", "socket buffer"}, {"application", "application"},
		{"unknown", "not counted anywhere"}}
}

// curves collects the curves and losses of a test by setting. Only capture tests have them.
func curves(name string, settings []bundle.Setting, s samples) (all []Curve, deaths []Drops) {
	for _, setting := range settings {
		c := Curve{Setting: setting.Name}
		died := map[string]uint64{}
		for _, t := range s.trials[cellKey{name, setting.Name}] {
			var d capture.Detail // the details of other tests have no curve
			if t.Round > 0 && len(t.Detail) > 0 && json.Unmarshal(t.Detail, &d) == nil {
				c.add(t.Round, d, died)
			}
		}
		if len(c.Points) > 0 {
			all = append(all, c)
		}
		if lost := (Drops{Setting: setting.Name}).withDrops(died); len(lost.Places) > 0 {
			deaths = append(deaths, lost)
		}
	}
	return all, deaths
}

// add adds the points of a trial. A point whose sender missed the rate says nothing about the
// receiver.
func (c *Curve) add(round int, d capture.Detail, died map[string]uint64) {
	for _, o := range d.Curve {
		if !o.Valid || o.Sent == 0 || o.Achieved <= 0 {
			continue
		}
		c.Points = append(c.Points, Point{Round: round, Rate: o.Achieved,
			Lost: max(0, 1-float64(o.Received)/float64(o.Sent))})
		if o.Drops != nil {
			for where, n := range o.Drops.Where {
				died[where] += n
			}
		}
	}
}

// withDrops adds the places where packets were lost.
func (d Drops) withDrops(died map[string]uint64) Drops {
	for _, w := range dropPlaces() {
		if n := died[w[0]]; n > 0 {
			d.Places = append(d.Places, DropCount{w[1], n})
		}
	}
	return d
}
