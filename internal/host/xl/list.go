package xl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Domain is a line of `xl list`: Dom0 or a guest.
type Domain struct {
	Name   string
	ID     int
	Memory int64 // bytes
	VCPUs  int
	State  State
	Time   float64 // processor time in seconds
}

// A State consists of six letters, each of which may be "-": running, blocked, paused, shut down,
// the reason for the shutdown, dying.
type State string

// Paused reports whether the domain is paused.
func (s State) Paused() bool { return s.has(2, 'p') }

// Down reports whether the guest has shut down or crashed, or the domain is being destroyed.
func (s State) Down() bool { return s.has(3, 's') || s.has(5, 'd') }

// Crashed reports whether the guest has crashed.
func (s State) Crashed() bool { return s.has(3, 's') && s.has(4, 'c') }

func (s State) has(i int, letter byte) bool { return len(s) > i && s[i] == letter }

// Domains returns all domains of this machine.
func Domains(ctx context.Context) ([]Domain, error) {
	text, err := Output(ctx, "list")
	if err != nil {
		return nil, err
	}
	return ParseList(text)
}

// ParseList parses the output of `xl list`. A name may contain spaces, the other columns may not.
func ParseList(text []byte) (all []Domain, err error) {
	lines, err := tableLines(text, "Name", "ID", "Mem", "VCPUs", "State", "Time(s)")
	for _, line := range lines {
		const columns = 5
		words := strings.Fields(line)
		if len(words) < columns+1 {
			return nil, unexpected(line)
		}
		last := words[len(words)-columns:]
		d := Domain{Name: strings.Join(words[:len(words)-columns], " "), State: State(last[3])}
		numbers := []error{number(last[0], &d.ID), megabytes(last[1], &d.Memory), number(last[2], &d.VCPUs),
			seconds(last[4], &d.Time)}
		if errors.Join(numbers...) != nil || !d.State.isValid() {
			return nil, unexpected(line)
		}
		all = append(all, d)
	}
	return all, err
}

// isValid reports whether a state is valid.
func (s State) isValid() bool {
	const letters = 6
	if len(s) != letters {
		return false
	}
	for i, may := range []string{"r-", "b-", "p-", "s-", "-rscwS?", "d-"} {
		if !strings.Contains(may, string(s[i:i+1])) {
			return false
		}
	}
	return true
}

// Details are the parts of a domain's configuration that Orrery uses, from `xl list -l`.
type Details struct {
	ID     int // or -1 if the domain does not run
	Name   string
	UUID   string
	Type   string // "pv", "pvh" or "hvm"
	Kernel string
	VCPUs  int
	Disks  int
	NICs   []string // MAC addresses
}

// ReadDetails returns the configuration of the named domains, or of all domains if none is named.
func ReadDetails(ctx context.Context, names ...string) ([]Details, error) {
	text, err := Output(ctx, append([]string{"list", "-l"}, names...)...)
	if err != nil {
		return nil, err
	}
	return ParseDetails(text)
}

// ParseDetails parses the output of `xl list -l`: JSON (libxl_domain_config, libxl_types.idl) of a
// list of domains, or of one domain.
func ParseDetails(text []byte) ([]Details, error) {
	type config struct {
		Create struct {
			Type string `json:"type"`
			Name string `json:"name"`
			UUID string `json:"uuid"`
		} `json:"c_info"`
		Build struct {
			VCPUs  int    `json:"max_vcpus"`
			Kernel string `json:"kernel"`
			Type   string `json:"type"`
		} `json:"b_info"`
		Disks []json.RawMessage `json:"disks"`
		NICs  []struct {
			MAC string `json:"mac"`
		} `json:"nics"`
	}
	type domain struct {
		ID     *int   `json:"domid"`
		Config config `json:"config"`
	}
	var all []domain
	if trimmed := strings.TrimSpace(string(text)); strings.HasPrefix(trimmed, "{") {
		all = make([]domain, 1)
		if err := json.Unmarshal(text, &all[0]); err != nil {
			return nil, fmt.Errorf("the output of xl list -l is invalid: %w", err)
		}
	} else if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("the output of xl list -l is invalid: %w", err)
	}
	var described []Details
	for _, d := range all {
		one := Details{ID: -1, Name: d.Config.Create.Name, UUID: d.Config.Create.UUID, Type: d.Config.Create.Type,
			Kernel: d.Config.Build.Kernel, VCPUs: d.Config.Build.VCPUs, Disks: len(d.Config.Disks)}
		if d.ID != nil {
			one.ID = *d.ID
		}
		for _, nic := range d.Config.NICs {
			one.NICs = append(one.NICs, nic.MAC)
		}
		described = append(described, one)
	}
	return described, nil
}

// tableLines returns the lines of a table without its header, which must begin with the given words. It
// skips empty lines.
func tableLines(text []byte, head ...string) (lines []string, err error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n "); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, errors.New("xl printed nothing")
	}
	words := strings.Fields(lines[0])
	for i, word := range head {
		if i >= len(words) || words[i] != word {
			return nil, unexpected(lines[0])
		}
	}
	return lines[1:], nil
}

func unexpected(line string) error {
	return fmt.Errorf("unexpected output of xl: %.200q", line)
}

func number(word string, to *int) (err error) {
	*to, err = strconv.Atoi(word)
	return err
}

func megabytes(word string, to *int64) error {
	n, err := strconv.ParseInt(word, 10, 43) // so that the size in bytes does not overflow
	*to = n << 20
	return err
}

func seconds(word string, to *float64) (err error) {
	*to, err = strconv.ParseFloat(word, 64)
	return err
}
