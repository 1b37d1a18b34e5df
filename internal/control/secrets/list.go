package secrets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/text/humanize"
)

// Where the value of a secret comes from.
const (
	Generated = "generate"
	File      = "file"
	Command   = "command"
)

// A Row is a secret of a site. It never has the value.
type Row struct {
	Secret     string   `json:"secret"`
	From       string   `json:"from"`             // Generated, File or Command
	Source     string   `json:"source,omitempty"` // the file or the command
	Generation int      `json:"generation"`       // the highest, if each node has its own value
	Roles      []string `json:"roles"`            // which read it
	Nodes      []string `json:"nodes"`            // which have these roles and exist
	Behind     []string `json:"behind"`           // nodes that have an older generation
	Format     string   `json:"format,omitempty"`
	Readers    []string `json:"readers,omitempty"` // the only roles that may read it
	// PerNode has the generation for each of Nodes if each node has its own value.
	PerNode map[string]int `json:"per_node,omitempty"`
	// Changed means that the file has changed, and orrery up starts the next generation.
	Changed bool `json:"changed,omitempty"`
	// Hosts is why the hosts do not agree on the generation, or "".
	Hosts string `json:"hosts,omitempty"`
}

// Progress returns on how many nodes the generation is current, for display.
func (r *Row) Progress() string {
	return fmt.Sprintf("%d of %s", len(r.Nodes)-len(r.Behind), humanize.Plural(len(r.Nodes), "node"))
}

// List returns the secrets of a site, in the order of their names.
func List(ctx context.Context, c *control.Session, s *site.Site) ([]Row, error) {
	f, seen, live, err := control.ObserveReleased(ctx, c, s)
	if err != nil {
		return nil, err
	}
	all, known := highest(seen)
	files, err := Compare(c.Dirs, s, all)
	if err != nil {
		return nil, err
	}
	rows := []Row{}
	for i := range s.Secrets {
		x := &s.Secrets[i]
		r := Row{Secret: x.Name, From: Generated, Generation: all.Of(x.Name), Roles: []string{}, Nodes: []string{},
			Behind: []string{}, Changed: files.Changed[x.Name], Format: x.Format, Readers: x.Readers}
		if x.Per == secretspec.PerNode {
			r.PerNode = map[string]int{}
		}
		for _, stored := range secretspec.Names(s, x) {
			r.Hosts = cmp.Or(r.Hosts, known[stored])
		}
		switch {
		case x.File != "":
			r.From, r.Source = File, x.File
		case len(x.Command) > 0:
			r.From, r.Source = Command, strings.Join(x.Command, " ")
		}
		for _, reader := range Readers(f, live, seen, x.Name) {
			r.Nodes = append(r.Nodes, reader.Name)
			r.Roles = append(r.Roles, reader.Roles...)
			stored := secretspec.Name(x, reader.Name)
			if r.PerNode != nil {
				r.PerNode[reader.Name] = all.Of(stored)
				r.Generation = max(r.Generation, all.Of(stored))
			}
			if !reader.Has(stored, all.Of(stored)) {
				r.Behind = append(r.Behind, reader.Name)
			}
		}
		slices.Sort(r.Roles)
		r.Roles = slices.Compact(r.Roles)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Secret, b.Secret) })
	return rows, nil
}

// Forget removes from hosts the secrets of nodes that are no longer there, after a plan was carried out.
func Forget(ctx context.Context, c *control.Session, f *apply.Fleet) error {
	if !f.SecretKeeper().HasOwn() {
		return nil
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return err
	}
	return f.SecretKeeper().Forget(ctx, seen)
}

// highest returns the generations of secrets, and for each on which hosts differ, why. Of such a secret
// it returns the highest generation.
func highest(seen []observe.Host) (rotation.Generations, map[string]string) {
	all, differ := rotation.Generations{}, map[string]string{}
	first := map[string]string{}
	for i := range seen {
		for name, n := range seen[i].Secrets {
			if on, ok := first[name]; !ok {
				first[name] = seen[i].Name
			} else if n != all[name] {
				differ[name] = fmt.Sprintf("host %s has generation %d and host %s has %d", on, all[name], seen[i].Name, n)
			}
			all[name] = max(all[name], n)
		}
	}
	return all, differ
}

// A Reader is a live node that exists and reads a secret.
type Reader struct {
	*observe.Node
	Roles []string // which read it
}

// Has reports whether all roles of the node were applied with a generation of a secret, by its stored name.
func (r *Reader) Has(stored string, generation int) bool {
	return r.Configured && r.Config.Generation(stored) == generation
}

// Readers returns the live nodes that exist and read a secret, in the order of the site. Live is the site
// with every node as its live release makes it.
func Readers(f *apply.Fleet, live *site.Site, seen []observe.Host, secret string) []Reader {
	existing := map[string]*observe.Node{}
	for i := range seen {
		for k := range seen[i].Nodes {
			if n := &seen[i].Nodes[k]; !n.Staged {
				existing[n.Name] = n
			}
		}
	}
	var all []Reader
	for i := range live.Nodes {
		n := &live.Nodes[i]
		current, ok := existing[n.Name]
		if !ok {
			continue
		}
		r := Reader{Node: current}
		for _, role := range f.All[0].SiteOf(n).RolesOf(n) {
			if slices.ContainsFunc(role.Secrets, func(use site.SecretUse) bool { return use.Name == secret }) {
				r.Roles = append(r.Roles, role.Name)
			}
		}
		if len(r.Roles) > 0 {
			all = append(all, r)
		}
	}
	return all
}
