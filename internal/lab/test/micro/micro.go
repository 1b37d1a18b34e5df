// Package micro measures the cost of single operations of kernel and processor.
//
// It runs the program orrery-micro (cmd/orrery-micro) in a place. The rows are those of the lmbench
// table in M. Aldinucci and others, "VirtuaLinux: virtualized high-density clusters with no single
// point of failure" (ParCo 2007), and a few more. They are defined in L. McVoy and C. Staelin,
// "lmbench: portable tools for performance analysis" (USENIX 1996). The figures are not lmbench's:
// its licence does not permit publishing figures of a changed program. These differences matter:
// RPC rows are a request of four bytes and its answer, without Sun's RPC. 500 TCP sockets are 250
// connections and not one socket many times. The cost of catching a signal is not subtracted from
// that of a fault.
package micro

import (
	"context"
	"slices"
	"strings"
	"time"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// Options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
// Without Pin, communication between two processes can take several times as long in one run as in
// another, depending on where the kernel places them.
type Options struct {
	// Default all: names that `orrery-micro list` prints
	Only []string `toml:"rows"`
	// Default `2.0`: seconds for all measurements of a trial
	Time float64 `toml:"time"`
	// Default `false`: latencies to the far end, too
	Far bool `toml:"far"`
	// Default `true`: keep the program and its children on one processor
	Pin bool `toml:"pin"`
}

type micro struct {
	asked Options
	rows  []row
}

var _ test.Test = (*micro)(nil)

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	m := &micro{asked: Options{Time: 2, Pin: true}}
	if err := test.Read(decode, &m.asked, m.check); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *micro) check(wrong test.MistakeFunc) {
	for _, name := range m.asked.Only {
		i := slices.IndexFunc(rows(), func(r row) bool { return r.name == name })
		if i < 0 {
			wrong(cure(name), "rows: measurement %q is unknown", name)
		} else if rows()[i].far && !m.asked.Far {
			wrong("write far = true", "rows: %s needs the far end", name)
		}
	}
	m.rows = slices.DeleteFunc(rows(), func(r row) bool {
		if len(m.asked.Only) > 0 {
			return !slices.Contains(m.asked.Only, r.name)
		}
		return r.far && !m.asked.Far
	})
	if least := 0.02 * float64(len(m.rows)); !(m.asked.Time >= least && m.asked.Time <= 600) {
		wrong("write fewer rows, or a different time", "time = %g: %d measurements take from %.2g to 600 seconds", m.asked.Time,
			len(m.rows), least)
	}
}

func cure(name string) string {
	var names []string
	for _, r := range rows() {
		names = append(names, r.name)
	}
	if near := problem.Suggest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "known: " + strings.Join(names, ", ")
}

// Needs returns the package and the tool that must be installed.
func (m *micro) Needs() test.Needs {
	return test.Needs{Packages: []string{"dash"}, Tools: []string{place.Micro}, Far: m.asked.Far}
}

// Figures returns the rows of the table.
func (m *micro) Figures() []test.Figure {
	var all []test.Figure
	for _, r := range m.rows {
		all = append(all, r.Figure)
		if r.loopback {
			all = append(all, r.asHost())
		}
	}
	return all
}

// Time returns about how long a trial takes. Each measurement may take a few batches longer.
func (m *micro) Time() time.Duration {
	return time.Duration((m.asked.Time*1.1 + 0.1) * float64(time.Second))
}

// Check runs each measurement for a moment.
func (m *micro) Check(ctx context.Context, t *test.Trial) error {
	peer, done, err := m.peer(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	for _, part := range m.parts(t.Near) {
		out, err := part.at.Output(ctx, place.Micro, m.args(t, part.rows, peer, 0.001)...)
		if err != nil {
			return problem.New(problem.Unable, "%s failed", place.Micro).At(t.Near.Name).Because(err).
				Try("see its output; orrery-micro run --only NAME tries one measurement")
		}
		if _, err := part.samples(out); err != nil {
			return err
		}
	}
	return nil
}

// A part is a set of rows and the place where they are measured.
type part struct {
	file   string
	at     *place.Place
	rows   []row
	figure func(row) test.Figure
}

// parts returns the two runs of the program in a trial: all rows in the place, and the loopback
// rows again in a network namespace without the host's packet filter rules.
func (m *micro) parts(near *place.Place) []part {
	all := []part{{"micro.jsonl", near, m.rows, func(r row) test.Figure {
		if r.loopback {
			return r.asHost()
		}
		return r.Figure
	}}}
	local := slices.DeleteFunc(slices.Clone(m.rows), func(r row) bool { return !r.loopback })
	if len(local) > 0 {
		all = append(all, part{"loopback.jsonl", near.Isolated(), local, func(r row) test.Figure { return r.Figure }})
	}
	return all
}

// Run runs one trial.
func (m *micro) Run(ctx context.Context, t *test.Trial) (r test.Result, err error) {
	peer, done, err := m.peer(ctx, t)
	if err != nil {
		return r, err
	}
	defer done()
	parts, detail, of := m.parts(t.Near), []Line{}, 0
	for _, part := range parts {
		of += len(part.rows)
	}
	for _, part := range parts {
		partTrial := *t
		partTrial.Near = part.at
		seconds := m.asked.Time * float64(len(part.rows)) / float64(of)
		out, err := partTrial.Record(ctx, part.file, place.Micro, m.args(t, part.rows, peer, seconds)...)
		if err != nil {
			return r, err
		}
		lines, err := Parse(out)
		if err != nil {
			return r, err
		}
		samples, err := part.samples(out)
		if err != nil {
			return r, err
		}
		r.Samples, detail = append(r.Samples, samples...), append(detail, lines...)
	}
	r.Labels, r.Detail = filterLabels(ctx, t.Near), detail
	return r, nil
}
