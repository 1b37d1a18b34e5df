package sitefile

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
	At   *place  `toml:"-"`
	Name string  `toml:"name"`
	When *string `toml:"when"`
}

type needsTable struct {
	Roles   []string `toml:"roles"`
	Healthy []string `toml:"healthy"`
}

type fileTable struct {
	At       *place  `toml:"-"`
	Path     string  `toml:"path"`
	Owner    *string `toml:"owner"`
	Mode     *mode   `toml:"mode"`
	Source   *string `toml:"source"`
	Template *string `toml:"template"`
	Content  *string `toml:"content"`
}

type secretUseTable struct {
	At    *place  `toml:"-"`
	Name  string  `toml:"name"`
	Owner *string `toml:"owner"`
	Mode  *mode   `toml:"mode"`
}

type stepTable struct {
	At          *place    `toml:"-"`
	Name        string    `toml:"name"`
	When        *string   `toml:"when"`
	Run         *string   `toml:"run"`
	Script      *string   `toml:"script"`
	Interpreter []string  `toml:"interpreter"`
	User        *string   `toml:"user"`
	Timeout     *duration `toml:"timeout"`
}

type volumeUseTable struct {
	At         *place  `toml:"-"`
	Name       string  `toml:"name"`
	Path       string  `toml:"path"`
	Owner      *string `toml:"owner"`
	Mode       *mode   `toml:"mode"`
	Exclusive  *bool   `toml:"exclusive"`
	Quarantine *string `toml:"quarantine"`
}

type healthTable struct {
	At       *place    `toml:"-"`
	TCP      int       `toml:"tcp"`
	HTTP     string    `toml:"http"`
	Command  []string  `toml:"command"`
	Timeout  *duration `toml:"timeout"`
	Interval *duration `toml:"interval"`
	Within   *duration `toml:"within"`
}
