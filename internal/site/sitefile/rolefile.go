package sitefile

import (
	"orrery/internal/site"
	"orrery/internal/strict"
)

// The types in this file are format 1 of role.toml, as file.go has the types of site.toml.

type roleFile struct {
	Format *int `toml:"format"`
	site.Role
	ServiceTables []serviceTable `toml:"service"`
	Needs         needsTable     `toml:"needs"`
	Files         []fileTable    `toml:"file"`
	Steps         []stepTable    `toml:"step"`
	Health        []healthTable  `toml:"health"`
}

// serviceTable is the long form of an entry of services.
type serviceTable struct {
	At   *strict.Node `toml:"-"`
	Name string       `toml:"name"`
	When string       `toml:"when" default:"boot"`
}

type needsTable struct {
	Roles   []string `toml:"roles"`
	Healthy []string `toml:"healthy"`
}

type fileTable struct {
	At *strict.Node `toml:"-"`
	site.File
	Source   *string `toml:"source"`
	Template *string `toml:"template"`
	Content  *string `toml:"content"`
}

type healthTable struct {
	site.HealthCheck
	TCP port `toml:"tcp"`
}

type stepTable struct {
	At *strict.Node `toml:"-"`
	site.Step
	Run    *string `toml:"run"`
	Script *string `toml:"script"`
}
