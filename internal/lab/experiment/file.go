package experiment

import (
	"time"

	"orrery/internal/problem"
	"orrery/internal/strict"
)

// The types of this file are format 1 of lab/*.toml: the permitted keys and their types. A pointer
// is nil if the key is absent.

type file struct {
	Format      *int         `toml:"format"`
	Title       string       `toml:"title"`
	Source      string       `toml:"source"`
	Rounds      *int         `toml:"rounds"`
	Most        *int         `toml:"most"`
	PerInstance *perInstance `toml:"rounds_per_instance"`
	Quiet       *waitTimeout `toml:"quiet"`
	Disturbed   *float64     `toml:"disturbed"`
	Again       *string      `toml:"again"`
	Width       *float64     `toml:"width"`
	Suite       *string      `toml:"suite"`
	Components  []string     `toml:"components"`
	Packages    []string     `toml:"packages"`
	Dir         string       `toml:"dir"`
	Settings    *strict.Node `toml:"setting"`
	Tests       *strict.Node `toml:"test"`
}

type settingTable struct {
	Engine     *string      `toml:"engine"`
	Network    *string      `toml:"network"`
	Interface  *string      `toml:"interface"`
	Cpus       float64      `toml:"cpus"`
	CPU        string       `toml:"cpu"`
	Pin        string       `toml:"pin"`
	Memory     strict.Size  `toml:"memory"`
	Swap       *strict.Size `toml:"swap"`
	Pids       int          `toml:"pids"`
	Privileged bool         `toml:"privileged"`
	Type       string       `toml:"type"`
	Disk       string       `toml:"disk"`
	Devices    []string     `toml:"devices"`
	Cache      string       `toml:"cache"`
	AIO        string       `toml:"aio"`
	Missing    *string      `toml:"missing"`
}

// testTable holds the keys of every test. The options of its kind are in the same table.
type testTable struct {
	Kind   string         `toml:"kind"`
	Copies *copies        `toml:"copies"`
	Only   *[]string      `toml:"only"`
	Limit  *time.Duration `toml:"limit"`
	Source string         `toml:"source"`
}

// maxCopies limits the number of concurrent copies of a test. Each copy is a node.
const maxCopies = 64

// copies is a number or a list of numbers.
type copies []int

// Parse parses both forms.
func (c *copies) Parse(value any) *problem.Problem {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	if len(items) == 0 {
		return mistake("the list is empty").Try("write copies = 1, or remove it")
	}
	for _, item := range items {
		n, ok := item.(int64)
		switch {
		case !ok:
			return mistake("%s is not a number of copies", strict.Describe(item)).Try("write copies = 8 or copies = [1, 8]")
		case n < 1 || n > maxCopies:
			return mistake("%d is not from 1 to %d", n, maxCopies).Try("write copies = 8 or copies = [1, 8]")
		}
		for _, before := range *c {
			if before == int(n) {
				return mistake("%d is listed twice", n).Try("remove one")
			}
		}
		*c = append(*c, int(n))
	}
	return nil
}
