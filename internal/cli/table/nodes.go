package table

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/control/status"
	"orrery/internal/observe"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// Nodes prints the state of nodes or, with usage, their resource usage. It prints JSON for
// programs, and otherwise lines of at most width columns, or of any width if it is 0.
func Nodes(w io.Writer, rows []status.Node, usage bool, width int) error {
	if reply.IsJSON(w) {
		return reply.JSON(w, rows)
	}
	for _, l := range styledLines(rows, usage, width, time.Now()) {
		l.print(w)
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// styledLines returns the table, followed by remarks on single nodes.
func styledLines(rows []status.Node, usage bool, width int, now time.Time) []line {
	all := columns(rows, usage, now)
	cells := make([][]string, 1+len(rows))
	for _, c := range all {
		cells[0] = append(cells[0], c.heading)
		for i, r := range rows {
			cells[i+1] = append(cells[i+1], c.of(r))
		}
	}
	var text []line
	for n, row := range fitCells(cells, width) {
		styles := make([]screen.Style, len(all))
		for i, c := range all {
			if c.style != nil && n > 0 {
				styles[i] = c.style(rows[n-1])
			}
		}
		text = append(text, newLine(row, styles, width))
	}
	remark := func(said string, as screen.Style) {
		said = sanitize.Line(strings.ReplaceAll(said, "\n", " "))
		text = append(text, newLine([]string{said}, []screen.Style{as}, width))
	}
	for _, r := range rows {
		as := screen.Warn
		if !r.IsGood() {
			as = screen.Bad
		}
		for _, said := range remarks(r) {
			remark(r.Node+": "+said, as)
		}
		if usage {
			continue
		}
		for _, said := range publishedLines(r) {
			remark(r.Node+": "+said, screen.Plain)
		}
	}
	for _, said := range fullDisks(rows) {
		remark(said, screen.Warn)
	}
	return text
}

// fullDisks returns a line for each host that has little room on its disk.
func fullDisks(rows []status.Node) []string {
	var all []string
	told := map[string]bool{}
	for _, r := range rows {
		for _, s := range r.Shortages {
			if s.Of == observe.ShortDisk && !told[r.Host] {
				told[r.Host] = true
				all = append(all, fmt.Sprintf("host %s: its disk is %s: make room with orrery snapshot rm, release prune or image gc",
					r.Host, used(s)))
			}
		}
	}
	return all
}

// used returns how much of a resource is used.
func used(s observe.Shortage) string {
	return fmt.Sprintf("%d %% full (%s of %s)", s.Percent(), humanize.Bytes(s.Used), humanize.Bytes(s.Size))
}

// remarks returns the remarks on a node.
func remarks(r status.Node) []string {
	var all []string
	if r.Undeclared {
		all = append(all, "is not in site.toml any more: orrery up destroys it")
	}
	if r.Detail != "" {
		all = append(all, r.Detail)
	}
	if f := r.Failure; f != nil {
		all = append(all, fmt.Sprintf("%s failed at %s UTC (%s shows why): %s", f.Step, f.At.UTC().Format(time.DateTime),
			f.See, f.Found))
	}
	if r.Starved {
		all = append(all, "is frozen: the disk of its host is full. Make room, then orrery start "+r.Node)
	}
	if r.Panic != "" {
		all = append(all, "its kernel has panicked (orrery restart "+r.Node+"): "+r.Panic)
	}
	if r.Rootless {
		all = append(all,
			"the process that serves its root file system has ended, and it may still write to its disks: orrery restart "+r.Node)
	}
	if len(r.Unlinked) > 0 {
		all = append(all, "has lost its link to "+humanize.List(r.Unlinked, 8)+": orrery up "+r.Node)
	}
	if len(r.Outdated) > 0 {
		all = append(all, "runs in programs that have been replaced on its host ("+humanize.List(r.Outdated, 2)+
			"): orrery renew "+r.Node)
	}
	if len(r.Doubt) > 0 {
		all = append(all, "may or may not have the network "+humanize.List(r.Doubt, 8)+
			", because a run that changed it was killed: orrery up "+r.Node)
	}
	for _, s := range r.Shortages {
		switch s.Of {
		case observe.ShortMemory:
			all = append(all, "its memory is "+used(s)+": raise memory in site.toml, then orrery up "+r.Node)
		case observe.ShortVolume:
			all = append(all, "the disk of its volume "+s.Volume+" is "+used(s))
		}
	}
	for _, o := range r.Rotations {
		all = append(all, fmt.Sprintf("has generation %d of secret %s: generation %d on %d of %s (orrery up %s)",
			o.Generation, sanitize.Line(o.Secret), o.Newest, o.On, humanize.Plural(o.Of, "node"), r.Node))
	}
	for _, d := range r.Drift {
		all = append(all, d.String())
	}
	return all
}

// publishedLines returns the ports of its host that lead to a node.
func publishedLines(r status.Node) []string {
	var all []string
	for _, p := range r.Published {
		from := "port " + p.Ports + " of its host"
		switch {
		case p.URL != "":
			from = p.URL
		case p.Address != "":
			from = "port " + p.Ports + " of " + p.Address
		}
		all = append(all, from+" leads to its port "+p.Node)
	}
	return all
}

// A column shows one property of each node.
type column struct {
	heading string
	of      func(status.Node) string
	style   func(status.Node) screen.Style // nil for plain text
}

func columns(rows []status.Node, usage bool, now time.Time) []column {
	all := []column{{heading: "NODE", of: func(r status.Node) string { return r.Node }}}
	if !usage { // with usage, a small terminal has no room for these columns
		all = append(all,
			column{heading: "ID", of: func(r status.Node) string { return strconv.Itoa(r.ID) }},
			column{heading: "HOST", of: func(r status.Node) string { return r.Host }})
	}
	if slices.ContainsFunc(rows, func(r status.Node) bool { return r.Release != 0 || r.Quarantine }) {
		all = append(all, column{heading: "RELEASE", of: releaseCell})
	}
	all = append(all, column{heading: "STATE", of: func(r status.Node) string { return r.State }, style: stateStyle})
	if usage {
		return append(all,
			column{heading: "HEALTH", of: func(r status.Node) string { return r.Health }, style: healthStyle},
			column{heading: "CPUS", of: usageCell(cpus)}, column{heading: "MEMORY/MiB", of: usageCell(memory)},
			column{heading: "PIDS", of: usageCell(pids)}, column{heading: "DISK", of: usageCell(disk)},
			column{heading: "VOLUMES", of: usageCell(volumes)})
	}
	return append(all,
		column{heading: "HEALTH", of: func(r status.Node) string { return health(r, now) }, style: healthStyle},
		column{heading: "ADDRESSES", of: addresses},
		column{heading: "ROLES", of: func(r status.Node) string { return strings.Join(r.Roles, ",") }})
}

// releaseCell returns the release of a node, and whether it is live.
func releaseCell(r status.Node) string {
	release := "none"
	if r.Release != 0 {
		release = strconv.Itoa(r.Release)
	}
	if r.Quarantine {
		return release + " (quarantine)"
	}
	return release
}

func addresses(r status.Node) string {
	var all []string
	for _, network := range r.Networks {
		text := network + "=" + r.Addresses[network]
		if at := r.AnswersAt[network]; at != "" {
			text += " (answers at " + at + ")"
		}
		all = append(all, text)
	}
	for _, network := range slices.Sorted(maps.Keys(r.AnswersAt)) {
		if !slices.Contains(r.Networks, network) {
			all = append(all, network+"="+r.AnswersAt[network]+" (not declared)")
		}
	}
	return strings.Join(all, " ")
}

// usageCell returns a function for a cell with a resource of a node. The cell is "-" if the usage is
// unknown.
func usageCell(of func(*apply.Usage) string) func(status.Node) string {
	return func(r status.Node) string {
		if r.Usage == nil {
			return "-"
		}
		return of(r.Usage)
	}
}

// amountCell returns text, or "-" if n is below 0, which means unknown.
func amountCell(n int64, text string) string {
	if n < 0 {
		return "-"
	}
	return text
}

func cpus(u *apply.Usage) string {
	switch {
	case u.Processors < 0:
		return "-"
	case u.Limits.Cpus > 0:
		return fmt.Sprintf("%.2f of %g", u.Processors, u.Limits.Cpus)
	}
	return fmt.Sprintf("%.2f", u.Processors)
}

func pids(u *apply.Usage) string { return amountCell(u.Pids, strconv.FormatInt(u.Pids, 10)) }

func disk(u *apply.Usage) string { return amountCell(u.Disk, humanize.Bytes(u.Disk)) }

func volumes(u *apply.Usage) string { return amountCell(u.Volumes, humanize.Bytes(u.Volumes)) }

func memory(u *apply.Usage) string {
	switch {
	case u.Memory < 0:
		return "-"
	case u.Limits.Memory > 0:
		return fmt.Sprintf("%d of %d", u.Memory>>20, u.Limits.Memory>>20)
	}
	return strconv.FormatInt(u.Memory>>20, 10)
}

// health returns the health of a node, and the age of that result.
func health(r status.Node, now time.Time) string {
	switch {
	case r.Probed:
		return r.Health + " now"
	case r.HealthAt.IsZero():
		return r.Health
	case r.Health != status.Failed && now.Sub(r.HealthAt) >= status.Fresh:
		return "was " + r.Health + " " + ago(now.Sub(r.HealthAt))
	}
	return r.Health + " " + ago(now.Sub(r.HealthAt))
}

// ago returns a short text for a time in the past.
func ago(d time.Duration) string {
	switch {
	case d < time.Second: // including negative durations, if the clock was set back
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}

func stateStyle(r status.Node) screen.Style {
	switch {
	case r.State == string(observe.Running) || r.IsGood() || r.Quarantine:
		return screen.Plain
	case r.State == string(observe.Stopped):
		return screen.Warn
	}
	return screen.Bad
}

// healthStyle returns the style of a node's health. A healthy node that was not looked at for a while is
// faint.
func healthStyle(r status.Node) screen.Style {
	switch {
	case r.Health == status.Unhealthy || r.Health == status.Failed || r.Health == status.Unknown:
		return screen.Bad
	case r.Health == status.Healthy && r.Stale:
		return screen.Faint
	case r.Health == status.Healthy:
		return screen.Good
	case r.IsGood() || r.Quarantine || r.Health == "-":
		return screen.Plain
	}
	return screen.Warn
}
