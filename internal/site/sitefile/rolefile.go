package sitefile

import (
	"time"

	"orrery/internal/strict"
)

// The types of this file are format 1 of role.toml.

type roleFile struct {
	Format        *int              `toml:"format"`
	Description   string            `toml:"description"`
	Apt           []string          `toml:"apt"`
	Pip           []string          `toml:"pip"`
	Services      []string          `toml:"services"`
	ServiceTables []serviceTable    `toml:"service"`
	SimulatedBy   string            `toml:"simulated_by"`
	Changes       []string          `toml:"changes"`
	Needs         needsTable        `toml:"needs"`
	Env           map[string]string `toml:"env"`
	Files         []fileTable       `toml:"file"`
	Secrets       []secretUseTable  `toml:"secret"`
	Steps         []stepTable       `toml:"step"`
	Volumes       []volumeUseTable  `toml:"volume"`
	Health        []healthTable     `toml:"health"`
}

// serviceTable is the long form of an entry of services.
type serviceTable struct {
	At   *strict.Node `toml:"-"`
	Name string       `toml:"name"`
	When *string      `toml:"when"`
}

type needsTable struct {
	Roles   []string `toml:"roles"`
	Healthy []string `toml:"healthy"`
}

type fileTable struct {
	At       *strict.Node `toml:"-"`
	Path     string       `toml:"path"`
	Owner    *string      `toml:"owner"`
	Mode     *mode        `toml:"mode"`
	Source   *string      `toml:"source"`
	Template *string      `toml:"template"`
	Content  *string      `toml:"content"`
}

type secretUseTable struct {
	At    *strict.Node `toml:"-"`
	Name  string       `toml:"name"`
	Owner *string      `toml:"owner"`
	Mode  *mode        `toml:"mode"`
}

type stepTable struct {
	At          *strict.Node   `toml:"-"`
	Name        string         `toml:"name"`
	When        *string        `toml:"when"`
	Run         *string        `toml:"run"`
	Script      *string        `toml:"script"`
	Interpreter []string       `toml:"interpreter"`
	User        *string        `toml:"user"`
	Timeout     *time.Duration `toml:"timeout"`
}

type volumeUseTable struct {
	At         *strict.Node `toml:"-"`
	Name       string       `toml:"name"`
	Path       string       `toml:"path"`
	Owner      *string      `toml:"owner"`
	Mode       *mode        `toml:"mode"`
	Exclusive  *bool        `toml:"exclusive"`
	Quarantine *string      `toml:"quarantine"`
}

type healthTable struct {
	At       *strict.Node   `toml:"-"`
	TCP      int            `toml:"tcp"`
	HTTP     string         `toml:"http"`
	Command  []string       `toml:"command"`
	Timeout  *time.Duration `toml:"timeout"`
	Interval *time.Duration `toml:"interval"`
	Within   *time.Duration `toml:"within"`
}
