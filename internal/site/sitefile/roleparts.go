package sitefile

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
)

// roleOf converts a decoded role.toml to a role of the model.
func (l *loader) roleOf(name string, f *roleFile, beside map[string][]byte) site.Role {
	r := roleParts{f.Role, l.report}
	r.Name, r.Dir, r.Beside = name, l.report.roleDir(name), beside
	r.NeedsRoles, r.NeedsHealthy = f.Needs.Roles, f.Needs.Healthy
	for i, unit := range f.Services {
		l.report.units[[2]string{name, unit}], _ = l.report.roots[l.report.roleFile(name)].Find("services", strconv.Itoa(i))
	}
	for i := range f.ServiceTables {
		r.service(&f.ServiceTables[i])
	}
	for i := range f.Files {
		r.Files = append(r.Files, r.content(&f.Files[i]))
	}
	for i := range f.Steps {
		r.Steps = append(r.Steps, r.step(&f.Steps[i], i+1))
	}
	for i := range f.Health {
		h := f.Health[i].HealthCheck
		h.TCP, h.TCPParam = f.Health[i].TCP.number, f.Health[i].TCP.param
		r.Health = append(r.Health, h)
	}
	for i := range r.Volumes {
		if v := &r.Volumes[i]; v.Exclusive && v.Quarantine == "" {
			v.Quarantine = site.CopySnapshot
		}
	}
	return r.Role
}

// roleParts is a role that is being converted.
type roleParts struct {
	site.Role
	report *report
}

func (r *roleParts) reportAt(at *strict.Node, p *problem.Problem) {
	r.report.addAt(r.report.roleFile(r.Name), at, p)
}

// service adds a service in the long form.
func (r *roleParts) service(t *serviceTable) {
	r.report.units[[2]string{r.Name, t.Name}] = t.At.At("name")
	switch t.When {
	case site.Boot:
		r.Services = append(r.Services, t.Name)
	case site.Active:
		r.Active = append(r.Active, t.Name)
	default:
		r.reportAt(t.At.Keys["when"], mistake("when = %q is unknown", t.When).
			Try(`write when = "boot", or when = "active" for a service that runs only on a live node`))
	}
}

func (r *roleParts) content(t *fileTable) site.File {
	f := t.File
	f.Unsaid = t.At.Keys["mode"] == nil
	given := 0
	if t.Source != nil {
		given++
		f.Source = path.Clean(*t.Source)
		f.Content = r.besideNamed("source", *t.Source, t.At.Keys["source"])
	}
	if t.Template != nil {
		given++
		f.Template = path.Clean(*t.Template)
		f.Content = r.besideNamed("template", *t.Template, t.At.Keys["template"])
	}
	if t.Content != nil {
		given++
		f.Content = []byte(*t.Content)
	}
	if given != 1 {
		r.reportAt(t.At, mistake("the file %s has %d of source, template and content", cmp.Or(f.Path, "without a path"),
			given).
			Try("set one of them"))
	}
	return f
}

func (r *roleParts) step(t *stepTable, number int) site.Step {
	s := t.Step
	if s.Timeout == 0 {
		s.Timeout = 2 * time.Minute
		if s.When == site.Build {
			s.Timeout = 10 * time.Minute
		}
	}
	if len(s.Interpreter) == 0 {
		s.Interpreter = []string{"/bin/sh", "-eu"}
	}
	switch {
	case (t.Run == nil) == (t.Script == nil):
		r.reportAt(t.At, mistake("the step must have either run or script").
			Try(`write run = "FILE" for a script beside %s, or script = """…"""`, roleFileName))
	case t.Run != nil:
		s.Run = path.Clean(*t.Run)
		s.Script = r.besideNamed("run", *t.Run, t.At.Keys["run"])
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

// besideNamed returns the content of a file in the role's directory that role.toml names.
func (r *roleParts) besideNamed(key, name string, at *strict.Node) []byte {
	if name == "" || !filepath.IsLocal(name) {
		r.reportAt(at, mistake("%s = %q is not in the role's directory", key, name).Try("move it beside %s", roleFileName))
		return nil
	}
	content, ok := r.Beside[path.Clean(name)]
	if !ok {
		r.reportAt(at, mistake("%s = %q does not exist in %s", key, name, r.Dir).
			Try("%s", problem.SuggestOr(name, slices.Sorted(maps.Keys(r.Beside)), "write it")))
	}
	return content
}
