package xl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// Info is the part of the output of `xl info` that Orrery uses.
type Info struct {
	Version   string // "4.17.5"
	CPUs      int
	Total     int64 // memory of the machine, in bytes
	Free      int64 // memory that no domain has, in bytes
	Scheduler string
	Can       []string // "pv", "hvm", "hap", …, or empty for a version that does not print it
}

// Runs reports whether guests of a type can run. HVM and PVH need hardware virtualization.
func (i *Info) Runs(kind string) bool {
	switch {
	case len(i.Can) == 0:
		return true
	case kind == "pv":
		return slices.Contains(i.Can, "pv")
	}
	return slices.Contains(i.Can, "hvm")
}

// ReadInfo returns the output of `xl info` on this machine.
func ReadInfo(ctx context.Context) (*Info, error) {
	text, err := Output(ctx, "info")
	if err != nil {
		return nil, err
	}
	return ParseInfo(text)
}

// ParseInfo parses the output of `xl info`: a name, a colon and a value on each line.
func ParseInfo(text []byte) (*Info, error) {
	i := &Info{}
	bad := func(line string, err error) error { return errors.Join(unexpected(line), err) }
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		var err error
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "xen_version":
			i.Version = value
		case "xen_scheduler":
			i.Scheduler = value
		case "nr_cpus":
			err = number(value, &i.CPUs)
		case "total_memory":
			err = megabytes(value, &i.Total)
		case "free_memory":
			err = megabytes(value, &i.Free)
		case "virt_caps":
			i.Can = strings.Fields(value)
		}
		if err != nil {
			return nil, bad(line, err)
		}
	}
	if i.Version == "" {
		return nil, errors.New("xl does not report the version of Xen")
	}
	return i, nil
}

// An Uptime is how long a domain has run.
type Uptime struct {
	Name string
	ID   int
	For  time.Duration
}

// ParseUptime parses the output of `xl uptime`. If a domain has run for days, these are before the
// time: "2 days, 3:04:05".
func ParseUptime(text []byte) (all []Uptime, err error) {
	lines, err := tableLines(text, "Name", "ID", "Uptime")
	for _, line := range lines {
		words := strings.Fields(line)
		clock, days := 1, 0
		if n := len(words); n >= 5 && (words[n-2] == "days," || words[n-2] == "day,") {
			if err := number(words[n-3], &days); err != nil || days < 0 || days > 1<<16 {
				return nil, unexpected(line)
			}
			clock = 3
		}
		at := len(words) - clock - 1
		if at < 1 {
			return nil, unexpected(line)
		}
		u := Uptime{Name: strings.Join(words[:at], " ")}
		rest, err := parseClock(words[len(words)-1])
		if err != nil || number(words[at], &u.ID) != nil {
			return nil, unexpected(line)
		}
		u.For = time.Duration(days)*24*time.Hour + rest
		all = append(all, u)
	}
	return all, err
}

// parseClock parses hours, minutes and seconds.
func parseClock(word string) (time.Duration, error) {
	parts := strings.Split(word, ":")
	if len(parts) != 3 {
		return 0, fmt.Errorf("%q is not a time", word)
	}
	var all time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, err := strconv.ParseUint(parts[i], 10, 8)
		if err != nil {
			return 0, err
		}
		all += time.Duration(n) * unit
	}
	return all, nil
}

// ConsolePath returns the path of the terminal at which Xen's daemon serves the console of a domain.
// The path is in xenstore, in a node that only Dom0 may write, not the guest.
func ConsolePath(ctx context.Context, domain string) (string, error) {
	id, err := DomainID(ctx, domain)
	if err != nil {
		return "", err
	}
	said, err := host.Output(ctx, host.Local{Name: "xenstore"},
		host.Command{Args: []string{"xenstore-read", fmt.Sprintf("/local/domain/%d/console/tty", id)}}, maxOutputBytes)
	if err != nil {
		return "", problem.New(problem.Failed, "xenstore does not report the console of %s", domain).Because(err)
	}
	path := strings.TrimSpace(string(said))
	if !terminal().MatchString(path) {
		return "", unexpected(path)
	}
	return path, nil
}

var terminal = pattern.New(`^/dev/pts/[0-9]+$`)
