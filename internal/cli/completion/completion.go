// Package completion completes words of the command line in the shell. The words are nodes and
// selectors, releases, twins, snapshots, sites, and volumes.
package completion

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/layers"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/volumes"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// An Offer returns the words that the shell may offer in a place of the command line. A word may be
// followed by a tab and a description.
type Offer func(words) ([]string, cobra.ShellCompDirective)

// words has the context for completing a word that is partly typed.
type words struct {
	Session *control.Session
	typed   string
}

const (
	noFiles = cobra.ShellCompDirectiveNoFileComp
	orFiles = cobra.ShellCompDirectiveDefault // the shell offers files of this host as well
	goesOn  = cobra.ShellCompDirectiveNoSpace
)

// Places says what the arguments of each verb may be, in order. The last entry also holds for all
// further arguments.
var Places = map[string][]Offer{
	"query": {words.selectors}, "graph": {words.selectors}, "plan": {words.selectors}, "up": {words.selectors},
	"down": {words.selectors}, "start": {words.selectors}, "stop": {words.selectors}, "restart": {words.selectors},
	"move":  {words.selectors},
	"renew": {words.selectors}, "stage": {words.selectors}, "switch": {words.selectors}, "rollback": {words.selectors},
	"status": {words.selectors}, "exec": {words.selectors}, "logs": {words.selectors, words.units},
	"shell": {words.nodes}, "console": {words.nodes}, "screen": {words.nodes}, "forward": {words.ports},
	"cp":           {words.copied},
	"release show": {words.releases, words.selectors}, "release diff": {words.releases, words.releases, words.selectors},
	"release trust": {words.releases},
	"twin create":   {words.sites, words.nothing}, "twin destroy": {words.twins},
	"twin status": {words.twins, words.selectors}, "twin exec": {words.twins, words.selectors},
	"twin shell": {words.twins, words.nodes}, "twin forward": {words.twins, words.ports}, "ci": {words.sites},
	"snapshot": {words.selectors}, "snapshot restore": {words.snapshots, words.selectors},
	"snapshot rm":   {words.snapshots},
	"volume mirror": {words.mirrored}, "volume verify": {words.mirrored},
	"volume adopt": {words.formers, words.nodes, words.nothing},
	"image build":  {words.selectors}, "image verify": {words.layers},
	"backup": {words.selectorsOrFiles}, "backup ls": {words.files}, "backup verify": {words.files},
	"backup prune": {words.directories}, "backup repair": {words.directories},
	"restore": {words.files}, "import": {words.files}, "init": {words.directories}, "mirror pull": {words.directories},
	"host facts": {words.hosts}, "host drain": {words.hosts}, "host undrain": {words.hosts},
	"host remove": {words.hosts}, "host add": {words.nothing, oneOf("local")},

	"rehearse":        {words.nothing},
	"rehearse boot":   {words.hosts},
	"rehearse cut":    {words.hosts},
	"rehearse gaps":   {words.nothing},
	"rehearse join":   {words.hosts},
	"rehearse kill":   {words.hosts},
	"rehearse pause":  {words.hosts},
	"rehearse resume": {words.hosts},
	"rehearse slow":   {words.hosts, words.nothing},
	"lab run":         {words.files}, "lab check": {words.files}, "lab compare": {words.files},
	"lab history": {words.files}, "lab report": {words.files}, "lab ls": {words.directories},
}

// values says what the values of flags may be, for all verbs. File names are completed by the shell
// itself.
var values = map[string]Offer{
	"site": words.directories, "twin": words.twins, "release": words.releases, "only": words.selectors,
	"host": words.nodes, "without": words.hosts, "to": words.hosts, "node": words.nodes, "layer": words.layers,
	"confirm-by": oneOf("checks", "hand"), "owner": words.nothing, "user": words.nothing,
	"scale":          oneOf("cpus=", "memory="),
	"yes-production": words.nothing, "yes-volumes": words.nothing, "yes-restore": words.nothing,
	"yes-replace": words.nothing, "yes-moves": words.nothing,
}

// Asked reports whether a command line is a completion request of the shell.
func Asked(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == cobra.ShellCompRequestCmd || arg == cobra.ShellCompNoDescRequestCmd
	})
}

// Add makes the shell complete the arguments and flags of a verb and its subcommands, for a
// session.
func Add(c *cobra.Command, a *control.Session) {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return offers(a, c, verb, args, typed)
	}
	for name, gives := range values {
		if c.LocalNonPersistentFlags().Lookup(name) == nil && (c.HasParent() || c.PersistentFlags().Lookup(name) == nil) {
			continue
		}
		_ = c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			return gives(words{a, typed})
		})
	}
	if verb == "lab run" || verb == "release trust" { // their --host is a host, not a node
		_ = c.RegisterFlagCompletionFunc("host", func(_ *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			return words{a, typed}.hosts()
		})
	}
	if down := c.Flags().Lookup("name"); verb == "down" && down != nil {
		_ = c.RegisterFlagCompletionFunc("name", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words{Session: a}.known(), noFiles
		})
	}
	for _, inner := range c.Commands() {
		Add(inner, a)
	}
}

// offers returns the words for the next argument of a verb.
func offers(a *control.Session, c *cobra.Command, verb string, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	of := Places[verb]
	if strings.Contains(a.Command, " -- ") { // cobra does not tell whether it was typed
		return nil, orFiles // complete a command
	}
	if c.DisableFlagParsing { // twin status and similar verbs
		var flags []string
		if flags, args = SharedFlags(args); len(args) > 0 {
			a.Twin = args[0]
		}
		if i := slices.Index(flags, "-C"); i >= 0 && i+1 < len(flags) {
			a.SiteDir = flags[i+1]
		}
	}
	usage, _, _ := strings.Cut(c.Use, "-- ")
	switch at := len(args); {
	case at < len(of):
		return of[at](words{a, typed})
	case len(of) > 0 && strings.Contains(usage, "..."):
		return of[len(of)-1](words{a, typed})
	}
	return nil, noFiles
}

func (words) nothing() ([]string, cobra.ShellCompDirective) { return nil, noFiles }

func (words) files() ([]string, cobra.ShellCompDirective) { return nil, orFiles }

func (words) directories() ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func oneOf(all ...string) Offer {
	return func(words) ([]string, cobra.ShellCompDirective) { return all, noFiles }
}

// hosts returns the hosts of the site.
func (a words) hosts() ([]string, cobra.ShellCompDirective) {
	return hosts.Names(a.site()), noFiles
}

// site returns the session's site, or an empty one if it cannot be read, because completion never
// reports errors.
func (a words) site() *site.Site {
	s, err := a.Session.Load()
	if err != nil {
		return &site.Site{}
	}
	return s
}

func (a words) nodes() ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, n := range a.site().Nodes {
		names = append(names, n.Name)
	}
	return names, noFiles
}

// selectors returns the names of nodes, and the other selectors of the site.
func (a words) selectors() ([]string, cobra.ShellCompDirective) {
	s := a.site()
	some, _ := a.nodes()
	add := func(property string, names ...string) {
		for _, name := range names {
			some = append(some, property+"="+name)
		}
	}
	for _, g := range s.Groups {
		add("group", g.Name)
	}
	for _, r := range s.Roles {
		add("role", r.Name)
	}
	for _, n := range s.Networks {
		add("network", n.Name)
	}
	for _, h := range s.Hosts {
		add("host", h.Name)
	}
	return append(some, "all"), noFiles
}

func (a words) selectorsOrFiles() ([]string, cobra.ShellCompDirective) {
	some, _ := a.selectors()
	return some, orFiles
}

// units returns the services of the site's roles.
func (a words) units() ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, r := range a.site().Roles {
		all = append(all, r.Services...)
	}
	slices.Sort(all)
	return slices.Compact(all), noFiles
}

// ports returns the nodes, each with a colon for the port.
func (a words) ports() ([]string, cobra.ShellCompDirective) {
	names, _ := a.nodes()
	for i := range names {
		names[i] += ":"
	}
	return names, noFiles | goesOn
}

// copied returns the nodes or, after a node and a colon, paths in that node. Other paths are on
// this host.
func (a words) copied() ([]string, cobra.ShellCompDirective) {
	name, at, inNode := strings.Cut(a.typed, ":")
	if !inNode || strings.Contains(name, "/") {
		some, _ := a.ports()
		return some, orFiles | goesOn
	}
	var some []string
	for _, found := range a.pathsIn(name, at) {
		some = append(some, name+":"+found)
	}
	return some, noFiles | goesOn
}

// pathsIn returns the paths in a node that have a prefix. Directories end in a slash. If the node
// does not answer soon, pathsIn returns none.
func (a words) pathsIn(name, begin string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s := a.site()
	if _, err := control.Declared(s, name); err != nil || a.Session.Allowed() != nil {
		return nil
	}
	in, err := way.Into(ctx, a.Session, s, name)
	if err != nil {
		return nil
	}
	return pathsIn(ctx, in, begin)
}

func pathsIn(ctx context.Context, in host.Runner, begin string) []string {
	if !strings.HasPrefix(begin, "/") {
		begin = "/root/" + begin
	}
	dir, base := path.Split(begin)
	const script = `cd -- "$1" && ls -1Ap | head -n 2000`
	out, err := host.Output(ctx, in, host.Command{Args: []string{"/bin/sh", "-c", script, "complete", dir}}, 1<<20)
	if err != nil {
		return nil
	}
	var all []string
	for line := range bytes.Lines(out) {
		found := strings.TrimSuffix(string(line), "\n")
		if strings.HasPrefix(found, base) && isPlain(found) {
			all = append(all, dir+found)
		}
	}
	return all
}

// isPlain reports whether a name has only characters without a special meaning for shells and
// terminals. Nodes choose the names of their files.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-+@%,=/", r)
	})
}

// releases returns the declared and the stored releases.
func (a words) releases() ([]string, cobra.ShellCompDirective) {
	s := a.site()
	if s.Name == "" {
		return nil, noFiles
	}
	var some []string
	all, err := releases.List(context.Background(), a.Session, s)
	if err != nil { // listing declared releases needs no rights
		for _, r := range s.Releases {
			some = append(some, strconv.Itoa(r.Number))
		}
		return some, noFiles
	}
	for _, i := range all {
		if i.Number > 0 {
			some = append(some, strconv.Itoa(i.Number)+"\t"+strings.TrimSpace(i.State()+" "+i.Notes))
		}
	}
	return some, noFiles
}

// twins returns the twins of the session's site, or all twins if there is no site.
func (a words) twins() ([]string, cobra.ShellCompDirective) {
	original := *a.Session
	original.Twin = ""
	of := words{Session: &original}.site().Name
	var some []string
	for _, r := range a.Session.Register().Twins() {
		if of == "" || r.Site == of {
			some = append(some, r.Options.Name+"\tof "+r.Site+", "+r.Options.Owner+"'s")
		}
	}
	return some, noFiles
}

// sites returns the names of the sites that are up. The shell also offers directories.
func (a words) sites() ([]string, cobra.ShellCompDirective) {
	var some []string
	for _, m := range a.Session.Register().SitesUp() {
		if m.Twin == "" {
			some = append(some, m.Site+"\t"+m.Dir)
		}
	}
	return some, orFiles
}

// known returns the names of the sites that this host knows.
func (a words) known() []string {
	var some []string
	rows, _ := sites.All(context.Background(), a.Session)
	for _, r := range rows {
		if r.Twin == "" {
			some = append(some, r.Site+"\t"+r.Word()+", "+cmp.Or(r.Dir, "-"))
		}
	}
	return some
}

func (a words) snapshots() ([]string, cobra.ShellCompDirective) {
	var some []string
	s := a.site()
	if s == nil {
		return nil, noFiles
	}
	near := *a.Session
	near.Without = hosts.Elsewhere(s) // completion does not log in to other hosts
	all, _ := snapshots.List(context.Background(), &near, s)
	for _, each := range all {
		some = append(some, each.ID+"\t"+humanize.Count(len(each.Nodes), "node")+", "+
			humanize.Count(len(each.Volumes), "volume"))
	}
	return some, noFiles
}

// mirrored returns the volumes that have a mirror.
func (a words) mirrored() ([]string, cobra.ShellCompDirective) {
	return volumes.WithMirror(a.Session, a.site()), noFiles
}

// formers returns the nodes that are no longer declared but still have data.
func (a words) formers() ([]string, cobra.ShellCompDirective) {
	return volumes.Formers(a.Session, a.site()), noFiles
}

func (a words) layers() ([]string, cobra.ShellCompDirective) {
	var some []string
	all, _ := layers.List(context.Background(), a.Session)
	for _, l := range all {
		some = append(some, l.Digest+"\t"+l.Title)
	}
	return some, noFiles
}

// SharedFlags splits the common flags before a verb from the rest of the arguments.
func SharedFlags(args []string) (flags, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[:i:i], args[i:]
		}
		if args[i] == "-C" || args[i] == "--site" || args[i] == "--twin" {
			i++ // its value
		}
	}
	return args, nil
}
