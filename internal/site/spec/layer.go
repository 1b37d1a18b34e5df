package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/distro"
)

// layerVersion is the version of the image builder's own changes to a base image or role layer (package
// image). Changing it makes new layers.
const layerVersion = "7"

// A Layer is the recipe of a read-only file tree.
type Layer struct {
	Digest string      `json:"digest"`
	Title  string      `json:"title"` // for display: "debian" or "debian + base, receptor"
	Base   string      `json:"base,omitempty"`
	Below  []string    `json:"below,omitempty"` // the role layers between it and its base, topmost first
	Parts  PartDigests `json:"parts"`

	Image site.Image   `json:"image"` // image of its base
	Roles []*site.Role `json:"roles"` // roles whose content it has, in order
	Under []*site.Role `json:"under"` // roles whose content is below it, in order
	Pins  string       `json:"pins"`  // requirements, if a role needs Python packages
	From  site.Mirror  `json:"from"`  // package sources

	Kernel string `json:"kernel,omitempty"` // package of the kernel, for a kernel layer
}

// Lower returns the digests of the layers below it, the topmost first.
func (l *Layer) Lower() []string {
	if l.IsBase() {
		return nil
	}
	return append(slices.Clone(l.Below), l.Base)
}

// IsBase reports whether the layer is a base image.
func (l *Layer) IsBase() bool { return l.Base == "" }

// IsDisk reports whether the layer is a disk image and not a file tree.
func (l *Layer) IsDisk() bool { return l.IsBase() && l.Image.IsDisk() }

// IsKernel reports whether the layer contains a kernel.
func (l *Layer) IsKernel() bool { return l.Kernel != "" }

// Base returns the recipe of a base image.
func Base(m site.Mirror, img site.Image) *Layer {
	parts := PartDigests{"fit": layerVersion}
	if img.IsDisk() {
		parts = PartDigests{"disk": img.Recipe()} // used unchanged
	} else if img.Import != "" {
		parts["import"] = img.Recipe()
		if img.Distribution != "" {
			parts["distribution"] = img.Distribution // a suite belongs to one distribution only
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
	all := slices.Concat(distro.ForImage(img).Base, img.Packages)
	slices.Sort(all)
	return slices.Compact(all)
}

// KernelLayer returns the recipe of the layer that a node with its own kernel has on top of its
// base: the kernel and its modules. Role layers are independent of it, so that nodes of every
// engine share them.
func KernelLayer(m site.Mirror, base *Layer) *Layer {
	return kernelLayer(m, base, distro.ForImage(base.Image).Kernel, "kernel")
}

// FullKernelLayer returns the recipe of a kernel layer with drivers for real hardware. The kernel
// of KernelLayer has only drivers for virtual machines.
func FullKernelLayer(m site.Mirror, base *Layer) *Layer {
	return kernelLayer(m, base, distro.ForImage(base.Image).FullKernel, "full kernel")
}

func kernelLayer(m site.Mirror, base *Layer, kernel, title string) *Layer {
	parts := PartDigests{"fit": layerVersion, "kernel": kernel}
	return &Layer{
		Digest: Digest(map[string]any{"base": base.Digest, "parts": parts}),
		Title:  base.Title + " (" + title + ")",
		Base:   base.Digest, Image: base.Image, Parts: parts, From: m, Kernel: kernel,
	}
}

// maxRoleLayers is the maximum number of role layers of a node. Each one costs the kernel one
// lookup per path.
const maxRoleLayers = 4

// RoleLayers returns the recipes of the layers that roles add to a base, the lowest first. It
// returns none if the roles add nothing. Each of the first roles has its own layer. Nodes whose
// roles begin alike share these layers, whatever else is in the site. The remaining roles share the
// last layer.
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

// roleLayer returns the recipe of the layer that roles add on top of under, or nil if they add
// nothing.
func roleLayer(m site.Mirror, base, under *Layer, before, roles []*site.Role, pins string) *Layer {
	parts := PartDigests{}
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
		pins = normalizePins(pins)
		parts["requirements"] = DigestBytes([]byte(pins))
		parts["pypi"] = m.PyPI
	}
	parts["fit"] = layerVersion
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

// BootServices returns the services that start when a node boots from the layer. It returns either all of
// them or none, because this depends on all roles.
func (l *Layer) BootServices() []string {
	roles := slices.Concat(l.Under, l.Roles)
	if !site.SelfStarting(roles) {
		return nil
	}
	return site.ServicesOf(roles)
}

func addRole(parts PartDigests, r *site.Role) {
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

// addBuilt adds to parts what roles install on a running node that has no role layers.
func addBuilt(parts PartDigests, m site.Mirror, roles []*site.Role, pins string) {
	for _, r := range roles {
		addRole(parts, r)
		if len(r.Pip) > 0 {
			parts[r.Name+": requirements"] = Digest([]any{DigestBytes([]byte(normalizePins(pins))), m.PyPI})
		}
	}
}

// BuildFiles returns the sorted names of the files in the role's directory that build steps may
// read. They exclude files that only the node uses (templates, scripts of boot steps). A change of
// such a file does not make a new layer.
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
	return roleFilesExcept(r, boot)
}

// BootFiles returns the sorted names of the files in the role's directory that boot steps may read.
// They exclude templates, which are rendered, scripts, which are the steps themselves, and sources,
// which are in the layer. Without a boot step it returns none, because nothing reads the files on
// the node.
func BootFiles(r *site.Role) []string {
	boots := false // or runs steps when it becomes live
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
	return roleFilesExcept(r, elsewhere)
}

func roleFilesExcept(r *site.Role, others map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Beside)), func(name string) bool { return others[name] })
}

// normalizePins removes comments and blank lines, so that only changes of what pip installs make a new
// layer.
func normalizePins(text string) string {
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

// DescribeChanges describes which parts differ, at most three of them. It returns "" if none differs.
func DescribeChanges(before, after PartDigests) string {
	var words []string
	for _, key := range ChangedParts(before, after) {
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

// ChangedParts returns the sorted names of the parts that were added, removed or changed.
func ChangedParts(old, desired PartDigests) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(desired))
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		before, existed := old[key]
		after, exists := desired[key]
		return existed == exists && before == after
	})
}
