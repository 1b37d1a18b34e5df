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
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// Nodes prints the state of nodes or, with usage, their resource usage. It prints JSON for
// programs, and otherwise lines of at most width columns, or of any width if it is 0.
func Nodes(w io.Writer, rows []status.Node, usage bool, width int) error {
	if reply.IsJSON(w) {
		return reply.JSON(w, rows)
	}
	_, err := io.WriteString(w, strings.Join(lines(rows, usage, width, time.Now()), "\n")+"\n")
	return err
}

// lines returns the table, followed by remarks on single nodes.
func lines(rows []status.Node, usage bool, width int, now time.Time) []string {
	all := columns(rows, usage, now)
	cells := make([][]string, 1+len(rows))
	for _, c := range all {
		cells[0] = append(cells[0], c.heading)
		for i, r := range rows {
			cells[i+1] = append(cells[i+1], c.of(r))
		}
	}
	text := fitColumns(cells, width)
	for _, r := range rows {
		below := remarks(r)
		if !usage {
			below = append(below, publishedLines(r)...)
		}
		for _, remark := range below {
			text = append(text, screen.Truncate(sanitize.Line(r.Node+": "+strings.ReplaceAll(remark, "\n", " ")), width))
		}
	}
	return text
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
}

func columns(rows []status.Node, usage bool, now time.Time) []column {
	all := []column{{"NODE", func(r status.Node) string { return r.Node }}}
	if !usage { // with usage, a small terminal has no room for these columns
		all = append(all,
			column{"ID", func(r status.Node) string { return strconv.Itoa(r.ID) }},
			column{"HOST", func(r status.Node) string { return r.Host }})
	}
	if slices.ContainsFunc(rows, func(r status.Node) bool { return r.Release != 0 || r.Quarantine }) {
		all = append(all, column{"RELEASE", releaseCell})
	}
	all = append(all, column{"STATE", func(r status.Node) string { return r.State }})
	if usage {
		return append(all,
			column{"HEALTH", func(r status.Node) string { return r.Health }},
			column{"CPUS", usageCell(cpus)}, column{"MEMORY/MiB", usageCell(memory)},
			column{"PIDS", usageCell(func(u *apply.Usage) string { return amountCell(u.Pids, strconv.FormatInt(u.Pids, 10)) })},
			column{"DISK", usageCell(func(u *apply.Usage) string { return amountCell(u.Disk, humanize.Bytes(u.Disk)) })},
			column{"VOLUMES", usageCell(func(u *apply.Usage) string {
				return amountCell(u.Volumes, humanize.Bytes(u.Volumes))
			})})
	}
	return append(all,
		column{"HEALTH", func(r status.Node) string { return health(r, now) }},
		column{"ADDRESSES", addresses},
		column{"ROLES", func(r status.Node) string { return strings.Join(r.Roles, ",") }})
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
