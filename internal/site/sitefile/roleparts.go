package sitefile

import (
	"fmt"
	"path"
	"strconv"
	"time"

	"orrery/internal/site"
	"orrery/internal/strict"
)

// roleOf makes the model's role of what role.toml says.
func (l *loader) roleOf(name string, f *roleFile, beside map[string][]byte) site.Role {
	r := site.Role{
		Name: name, Dir: "roles/" + name, Description: f.Description, Apt: f.Apt, Pip: f.Pip, Services: f.Services,
		SimulatedBy: f.SimulatedBy, Changes: f.Changes, NeedsRoles: f.Needs.Roles, NeedsHealthy: f.Needs.Healthy, Env: f.Env, Beside: beside,
	}
	for i, unit := range f.Services {
		l.report.units[[2]string{name, unit}], _ = l.report.roots[roleFileOf(name)].Find("services", strconv.Itoa(i))
	}
	for i := range f.ServiceTables {
		l.service(&r, &f.ServiceTables[i])
	}
	for i := range f.Files {
		r.Files = append(r.Files, l.roleContent(&r, &f.Files[i]))
	}
	for _, t := range f.Secrets {
		r.Secrets = append(r.Secrets, site.SecretUse{
			Line: t.At.Line, Name: t.Name, Owner: value(t.Owner, nil, "root:root"), Mode: uint32(value(t.Mode, nil, 0o400)),
		})
	}
	for i := range f.Steps {
		r.Steps = append(r.Steps, l.step(&r, &f.Steps[i], i+1))
	}
	for _, t := range f.Volumes {
		use := site.VolumeUse{
			Line: t.At.Line, Name: t.Name, Path: t.Path, Owner: value(t.Owner, nil, "root:root"), Mode: uint32(value(t.Mode, nil, 0o755)),
			Exclusive: value(t.Exclusive, nil, true), Quarantine: value(t.Quarantine, nil, site.Snapshot),
		}
		if use.Quarantine != site.Empty && use.Quarantine != site.Snapshot {
			l.report.wrong(roleFileOf(r.Name), t.At.Keys["quarantine"], mistake("quarantine = %q does not say what the volume begins with there", use.Quarantine).
				Try(`write "snapshot" for a copy of what is on it or "empty"`))
		}
		if t.Quarantine != nil && !use.Exclusive {
			l.report.wrong(roleFileOf(r.Name), t.At.Keys["quarantine"], mistake("quarantine = %q is of no use without exclusive: the nodes in quarantine have the volume itself", use.Quarantine).
				Try("take it out, or write exclusive = true"))
		}
		r.Volumes = append(r.Volumes, use)
	}
	for _, t := range f.Health {
		r.Health = append(r.Health, site.HealthCheck{
			Line: t.At.Line, TCP: t.TCP, HTTP: t.HTTP, Command: t.Command,
			Timeout:  value(t.Timeout, nil, 5*time.Second),
			Interval: value(t.Interval, nil, 500*time.Millisecond),
			Within:   value(t.Within, nil, time.Minute),
		})
	}
	return r
}

// service takes the long form of a service.
func (l *loader) service(r *site.Role, t *serviceTable) {
	l.report.units[[2]string{r.Name, t.Name}] = orAt(t.At.Keys["name"], t.At)
	switch when := value(t.When, nil, site.Boot); when {
	case site.Boot:
		r.Services = append(r.Services, t.Name)
	case site.Active:
		r.Active = append(r.Active, t.Name)
	default:
		l.report.wrong(roleFileOf(r.Name), t.At.Keys["when"], mistake("when = %q does not say when the service runs", when).
			Try(`write when = "boot" or, for one that must run only on a live node, when = "active"`))
	}
}

func (l *loader) roleContent(r *site.Role, t *fileTable) site.File {
	f := site.File{
		Line: t.At.Line, Path: t.Path, Owner: value(t.Owner, nil, "root:root"), Mode: uint32(value(t.Mode, nil, 0o644)), Unsaid: t.Mode == nil,
	}
	given := 0
	if t.Source != nil {
		given++
		f.Source = path.Clean(*t.Source)
		f.Content = l.besideNamed(r, "source", *t.Source, t.At.Keys["source"])
	}
	if t.Template != nil {
		given++
		f.Template = path.Clean(*t.Template)
		f.Content = l.besideNamed(r, "template", *t.Template, t.At.Keys["template"])
	}
	if t.Content != nil {
		given++
		f.Content = []byte(*t.Content)
	}
	if given != 1 {
		l.report.wrong(roleFileOf(r.Name), t.At, mistake("the file %s has %d of source, template and content", f.Path, given).
			Try("give one of them"))
	}
	return f
}

func (l *loader) step(r *site.Role, t *stepTable, number int) site.Step {
	file := roleFileOf(r.Name)
	s := site.Step{
		Line: t.At.Line, Name: t.Name, When: value(t.When, nil, ""), Interpreter: t.Interpreter,
		User: value(t.User, nil, "root"), Timeout: 2 * time.Minute,
	}
	switch s.When {
	case site.Build:
		s.Timeout = 10 * time.Minute
	case site.Boot, site.Active:
	default:
		at := orAt(t.At.Keys["when"], t.At)
		if l.report.bad[at] {
			break
		}
		l.report.wrong(file, at, mistake("when = %q does not say when the step is done", s.When).
			Try(`write when = "build" for what goes into the layer, when = "boot" for what is done on the node or when = "active" for what only a live node does`))
	}
	if t.Timeout != nil {
		s.Timeout = *t.Timeout
	}
	if len(s.Interpreter) == 0 {
		s.Interpreter = []string{"/bin/sh", "-eu"}
	}
	switch {
	case (t.Run == nil) == (t.Script == nil):
		l.report.wrong(file, t.At, mistake("the step must have either run or script").
			Try(`write run = "FILE" for a script beside %s or script = """…""" for one here`, roleFileName))
	case t.Run != nil:
		s.Run = path.Clean(*t.Run)
		s.Script = l.besideNamed(r, "run", *t.Run, t.At.Keys["run"])
	default:
		s.Script = []byte(*t.Script)
	}
	if s.Name == "" {
		s.Name = s.Run
	}
	if s.Name == "" {
		s.Name = fmt.Sprintf("step %d", number)
	}
	return s
}

func orAt(at, otherwise *strict.Node) *strict.Node {
	if at != nil {
		return at
	}
	return otherwise
}
