package check

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/text/pattern"
)

// suite also matches "stable" and "bookworm-backports".
var suite = pattern.New(`^[a-z][a-z0-9-]*$`)

var component = pattern.New(`^[a-z][a-z0-9/-]*$`)

func checkImages(ix *index, found *findings) {
	for _, i := range ix.Images {
		key := at("image", i.Name)
		checkLabel(found, key, "image", i.Name)
		switch {
		case i.Suite == "" && i.Import == "":
			found.report(key, `write suite = "bookworm"`, "image %s has neither suite nor import", i.Name)
		case i.Suite != "" && i.Import != "":
			found.report(at("image", i.Name, "import"), "take one of them out", "image %s has both suite and import", i.Name)
		case i.Suite != "" && !suite().MatchString(i.Suite):
			found.report(at("image", i.Name, "suite"), `write suite = "bookworm"`, "suite %q is not a Debian suite",
				i.Suite)
		}
		checkDistribution(found, &i)
		checkDiskImage(found, &i)
		for k, name := range i.Components {
			if !component().MatchString(name) {
				found.report(at("image", i.Name, "components", k), `such as "main"`, "component %q is not valid", name)
			}
		}
		for k, name := range i.Packages {
			checkDebianPackage(found, at("image", i.Name, "packages", k), name)
		}
	}
}

// checkDistribution checks that an image's distribution is known and has the image's suite. An
// image without a distribution may have a suite that only its mirror has.
func checkDistribution(found *findings, i *site.Image) {
	if i.Distribution == "" {
		return
	}
	d := distro.ByName(i.Distribution)
	if d == nil {
		known := names(distro.All, func(d **distro.Distribution) string { return (*d).Name })
		found.report(at("image", i.Name, "distribution"), "use "+sentence(known),
			"distribution %q is unknown", i.Distribution)
	} else if i.Suite != "" && !d.HasSuite(i.Suite) {
		cure := "use " + sentence(slices.Concat(d.Suites, d.SuiteAliases))
		found.report(at("image", i.Name, "suite"), cure, "%s has no suite %q", d.Title, i.Suite)
	}
}

func checkImageName(ix *index, found *findings, key []string, name string) {
	if _, ok := ix.Image(name); !ok {
		found.reportUnknown(key, "image", name, names(ix.Images, func(i *site.Image) string { return i.Name }))
	}
}
