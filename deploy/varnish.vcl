# Varnish 7 in front of Rowlock, with the vmod xkey (package varnish-modules). It caches public pages until Rowlock purges
# them. `CDN_PURGE_URL=http://varnish:6081/purge`; Varnish needs the same `CDN_PURGE_TOKEN` in its environment.
# TLS ends in front of it. Varnish appends the client's address to X-Forwarded-For: add one to TRUSTED_PROXIES. It does
# not limit the connections of an address: what ends TLS must (haproxy.cfg).
vcl 4.1;

import std;
import xkey;

backend rowlock {
    .host = "127.0.0.1";
    .port = "3000";
}

sub vcl_recv {
    if (req.url == "/purge") {
        # Purges are refused if no token is set.
        if (req.method != "POST" || !std.getenv("CDN_PURGE_TOKEN")
            || req.http.Authorization != "Bearer " + std.getenv("CDN_PURGE_TOKEN")) {
            return (synth(403));
        }
        set req.http.gone = xkey.purge(req.http.Surrogate-Key);
        return (synth(200, req.http.gone + " forgotten"));
    }
    if (req.http.Upgrade ~ "(?i)^websocket$") {
        return (pipe);
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    # Public pages. Rowlock's Cache-Control decides which of them are cached; all other requests are passed.
    if (req.url ~ "^/(\?|$)|^/(cities|theatres|films)/|^/(search|docs/problems|sitemap\.xml|robots\.txt)(\?|$)|^/(site|pkg|fonts|style)/"
        || req.url ~ "^/api/v1/(cities|shows)(\?|$)|^/api/v1/cities/[^/]+/theatres(\?|$)"
        || req.url ~ "^/api/v1/theatres/[^/]+/shows(\?|$)|^/api/v1/shows/[^/]+(/plan|/dots)?(\?|$)") {
        # One copy per language: that of the cookie, or the browser's first supported one.
        if (req.http.Cookie ~ "(^|;\s*)lang=(en|de|es|hi|ar)(;|$)") {
            set req.http.Accept-Language = regsub(req.http.Cookie, "^(.*;\s*)?lang=(en|de|es|hi|ar)(;.*)?$", "\2");
        } elsif (req.http.Accept-Language ~ "(?i)(^|,\s*)(en|de|es|hi|ar)\b") {
            set req.http.Accept-Language =
                std.tolower(regsub(req.http.Accept-Language, "(?i)^(?:.*?,\s*)??(en|de|es|hi|ar)\b.*$", "\1"));
        } else {
            set req.http.Accept-Language = "en";
        }
        unset req.http.Cookie;
        unset req.http.Authorization;
        return (hash);
    }
    return (pass);
}

sub vcl_pipe {
    set bereq.http.Upgrade = req.http.Upgrade;
    set bereq.http.Connection = "upgrade";
}

sub vcl_backend_response {
    # Varnish itself reads max-age and stale-while-revalidate from Cache-Control.
    set beresp.http.xkey = beresp.http.Surrogate-Key;
}

sub vcl_deliver {
    unset resp.http.xkey;
    unset resp.http.Surrogate-Key;
    unset resp.http.Cache-Tag;
}
