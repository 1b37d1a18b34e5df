package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/distro"
)

// fit is the version of what the image builder itself does to a base image or role layer (package image);
// changing that makes new layers.
const fit = "7"

// A Layer is the recipe of a read-only file tree.
type Layer struct {
	Digest string   `json:"digest"`
	Title  string   `json:"title"` // for people: "debian" or "debian + base, receptor"
	Base   string   `json:"base,omitempty"`
	Below  []string `json:"below,omitempty"` // the role layers between it and its base, the topmost first
	Parts  Parts    `json:"parts"`

	Image site.Image   `json:"image"` // of its base
	Roles []*site.Role `json:"roles"` // whose part it is, in order
	Under []*site.Role `json:"under"` // whose parts are below it, in order
	Pins  string       `json:"pins"`  // requirements, if a role needs Python packages
	From  site.Mirror  `json:"from"`  // where packages are had from

	Kernel string `json:"kernel,omitempty"` // of the layer with a kernel: the package that has it
}

// Lower returns the layers that it stands on, the topmost first.
func (l *Layer) Lower() []string {
	if l.IsBase() {
		return nil
	}
	return append(slices.Clone(l.Below), l.Base)
}

// IsBase reports whether the layer is a base image.
func (l *Layer) IsBase() bool { return l.Base == "" }

// IsDisk reports whether the layer is a disk image, and no tree.
func (l *Layer) IsDisk() bool { return l.IsBase() && l.Image.IsDisk() }

// IsKernel reports whether the layer is one with a kernel.
func (l *Layer) IsKernel() bool { return l.Kernel != "" }

// Base returns the recipe of an image.
func Base(m site.Mirror, img site.Image) *Layer {
	parts := Parts{"fit": fit}
	if img.IsDisk() {
		parts = Parts{"disk": img.Recipe()} // as it is: nothing is done to it
	} else if img.Import != "" {
		parts["import"] = img.Recipe()
		if img.Distribution != "" {
			parts["distribution"] = img.Distribution // a suite is of one only
		}
	} else {
		parts["suite"] = img.Suite
		parts["components"] = strings.Join(img.Components, " ")
		parts["packages"] = strings.Join(Packages(img), " ")
		parts["mirror"] = Digest(m)
	}
	return &Layer{Digest: Digest(parts), Title: img.Name, Parts: parts, Image: img, From: m}
}

// Packages returns all packages of an image, sorted.
func Packages(img site.Image) []string {
	all := slices.Concat(distro.Of(img).Base, img.Packages)
	slices.Sort(all)
	return slices.Compact(all)
}

// KernelLayer returns the recipe of what a node that boots a kernel of its own has on top of a
// base: that kernel, with its modules. Role layers do not stand on it, so that they are the same
// for nodes of every engine.
func KernelLayer(m site.Mirror, base *Layer) *Layer {
	return kernelLayer(m, base, distro.Of(base.Image).Kernel, "kernel")
}

// FullKernelLayer returns that of a kernel which has drivers of real hardware, too: the other has
// none but those of virtual machines.
func FullKernelLayer(m site.Mirror, base *Layer) *Layer {
	return kernelLayer(m, base, distro.Of(base.Image).FullKernel, "full kernel")
}

func kernelLayer(m site.Mirror, base *Layer, kernel, title string) *Layer {
	parts := Parts{"fit": fit, "kernel": kernel}
	return &Layer{
		Digest: Digest(map[string]any{"base": base.Digest, "parts": parts}),
		Title:  base.Title + " (" + title + ")",
		Base:   base.Digest, Image: base.Image, Parts: parts, From: m, Kernel: kernel,
	}
}

// maxRoleLayers is how many role layers a node stands on at most: each one costs the kernel a
// look-up for every path.
const maxRoleLayers = 4

// RoleLayers returns the recipes of what roles put on top of a base, the lowest first; none, if
// they put nothing there. Each of the first roles has a layer of its own, so that nodes whose roles
// begin alike share what they begin with, whatever else is in the site; the roles that are left
// share the last.
func RoleLayers(m site.Mirror, base *Layer, roles []*site.Role, pins string) []*Layer {
	var chain []*Layer
	under := base
	for first := 0; first < len(roles); {
		next := first + 1
		if len(chain) == maxRoleLayers-1 {
			next = len(roles)
		}
		if l := roleLayer(m, base, under, roles[:first], roles[first:next], pins); l != nil {
			chain, under = append(chain, l), l
		}
		first = next
	}
	return chain
}

// roleLayer returns the recipe of what roles put on top of a layer, or nil if they put nothing there.
func roleLayer(m site.Mirror, base, under *Layer, before, roles []*site.Role, pins string) *Layer {
	parts := Parts{}
	var names []string
	needsPython := false
	for _, r := range roles {
		names = append(names, r.Name)
		addRole(parts, r)
		needsPython = needsPython || len(r.Pip) > 0
	}
	if len(parts) == 0 {
		return nil
	}
	if !needsPython {
		pins = ""
	} else {
		pins = normalPins(pins)
		parts["requirements"] = DigestBytes([]byte(pins))
		parts["pypi"] = m.PyPI
	}
	parts["fit"] = fit
	parts["order"] = strings.Join(names, " ")
	title, below := base.Title+" + ", []string(nil)
	if under != base {
		title, below = under.Title+", ", append([]string{under.Digest}, under.Below...)
	}
	return &Layer{
		Digest: Digest(map[string]any{"base": under.Digest, "parts": parts}),
		Title:  title + strings.Join(names, ", "),
		Base:   base.Digest, Below: below, Image: base.Image, Parts: parts, Roles: roles, Under: before, Pins: pins, From: m,
	}
}

// Starts returns the services that start when a node boots from the layer: all or none, as this
// depends on all roles.
func (l *Layer) Starts() []string {
	roles := slices.Concat(l.Under, l.Roles)
	if !site.SelfStarting(roles) {
		return nil
	}
	return site.ServicesOf(roles)
}

func addRole(parts Parts, r *site.Role) {
	if len(r.Apt) > 0 {
		parts[r.Name+": apt"] = strings.Join(r.Apt, " ")
	}
	if len(r.Pip) > 0 {
		parts[r.Name+": pip"] = strings.Join(r.Pip, " ")
	}
	for _, f := range r.Files {
		if !f.Rendered() {
			parts[r.Name+": file "+f.Path] = Digest([]any{f.Owner, f.Mode, DigestBytes(f.Content)})
		}
	}
	built := false
	for _, s := range r.Steps {
		if s.When == site.Build {
			built = true
			parts[r.Name+": step "+s.Name] = Digest([]any{s.Script, s.Interpreter, s.User})
		}
	}
	if built {
		parts[r.Name+": env"] = Digest(r.Env)
		for _, name := range BuildFiles(r) {
			parts[r.Name+": "+name] = DigestBytes(r.Beside[name])
		}
	}
}

// addBuilt adds what roles do to a node without role layers, which is done when it runs.
func addBuilt(parts Parts, m site.Mirror, roles []*site.Role, pins string) {
	for _, r := range roles {
		addRole(parts, r)
		if len(r.Pip) > 0 {
			parts[r.Name+": requirements"] = Digest([]any{DigestBytes([]byte(normalPins(pins))), m.PyPI})
		}
	}
}

// BuildFiles returns the names, sorted, of the files beside role.toml that build steps may read:
// all but those that are only of use on the node (templates, scripts of boot steps), so that
// changing one of those does not make a new layer.
func BuildFiles(r *site.Role) []string {
	boot := map[string]bool{}
	for _, f := range r.Files {
		boot[f.Template] = true
	}
	for _, s := range r.Steps {
		if s.When != site.Build {
			boot[s.Run] = true
		}
	}
	return besideBut(r, boot)
}

// BootFiles returns the names, sorted, of the files beside role.toml that boot steps may read: all
// but templates, which are rendered, scripts, which are steps, and sources, which are in the layer.
// Without a boot step nobody reads them on the node.
func BootFiles(r *site.Role) []string {
	boots := false // or becomes active
	elsewhere := map[string]bool{}
	for _, f := range r.Files {
		elsewhere[f.Template], elsewhere[f.Source] = true, true
	}
	for _, s := range r.Steps {
		boots = boots || s.When != site.Build
		elsewhere[s.Run] = true
	}
	if !boots {
		return nil
	}
	return besideBut(r, elsewhere)
}

func besideBut(r *site.Role, others map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Beside)), func(name string) bool { return others[name] })
}

// normalPins drops comments and blank lines, so that only what pip would install makes another layer.
func normalPins(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if before, _, ok := strings.Cut(line, " #"); ok {
			line = before
		}
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Differences says in words which parts differ, at most three of them, or "" if none does.
func Differences(before, after Parts) string {
	var words []string
	for _, key := range Changed(before, after) {
		_, former := before[key]
		_, current := after[key]
		switch {
		case !former:
			words = append(words, key+" added")
		case !current:
			words = append(words, key+" removed")
		default:
			words = append(words, key+" changed")
		}
	}
	if len(words) > 3 {
		words = append(words[:3:3], fmt.Sprintf("and %d more", len(words)-3))
	}
	return strings.Join(words, ", ")
}

// Changed returns the names of the parts that are new, gone or other than before, in order.
func Changed(old, desired Parts) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(desired))
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		before, existed := old[key]
		after, exists := desired[key]
		return existed == exists && before == after
	})
}
