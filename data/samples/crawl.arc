http://example.org/ 192.0.2.1 20260101000000 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/ 192.0.2.1 20260101000001 text/html 85
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/1?from=here

payload
https://www.example.net/index.html 192.0.2.1 20260101000002 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/news/2024/05/17/the-long-summer.html 192.0.2.1 20260101000003 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/search?q=garden+tools&page=2 192.0.2.1 20260101000004 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/wiki/Main_Page 192.0.2.1 20260101000005 text/html 85
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/5?from=here

payload
https://example.com/wiki/%D0%9C%D0%BE%D1%81%D0%BA%D0%B2%D0%B0 192.0.2.1 20260101000006 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/files/report%20final.pdf 192.0.2.1 20260101000007 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.net/a%2Fb?x=%26#top 192.0.2.1 20260101000008 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://user@example.org/private 192.0.2.1 20260101000009 text/html 85
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/9?from=here

payload
https://user:secret@example.org/private 192.0.2.1 20260101000010 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org:8443/status 192.0.2.1 20260101000011 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://192.0.2.1/ 192.0.2.1 20260101000012 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://[2001:db8::1]/ 192.0.2.1 20260101000013 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/13?from=here

payload
https://[2001:db8::1]:8080/a 192.0.2.1 20260101000014 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://shop.example.com/item/4711?colour=red;size=9 192.0.2.1 20260101000015 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.test/~user/ 192.0.2.1 20260101000016 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
ftp://ftp.example.org/pub/readme.txt 192.0.2.1 20260101000017 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/17?from=here

payload
ws://example.org/socket 192.0.2.1 20260101000018 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
HTTP://example.org/ 192.0.2.1 20260101000019 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
Http://Example.Org/ 192.0.2.1 20260101000020 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://EXAMPLE.COM/ 192.0.2.1 20260101000021 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/21?from=here

payload
https://Www.Example.Net/Index.HTML 192.0.2.1 20260101000022 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
hTtPs://eXaMpLe.oRg/A/B/C/ 192.0.2.1 20260101000023 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
HTTPS://EXAMPLE.ORG/NEWS/ 192.0.2.1 20260101000024 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/Case/Matters/Here 192.0.2.1 20260101000025 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/25?from=here

payload
FTP://FTP.example.org/pub/readme.txt 192.0.2.1 20260101000026 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
MAILTO:User@Example.org 192.0.2.1 20260101000027 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://User@Example.org/private 192.0.2.1 20260101000028 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com:443/ 192.0.2.1 20260101000029 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/29?from=here

payload
http://example.org:/ 192.0.2.1 20260101000030 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com:/a 192.0.2.1 20260101000031 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org:080/ 192.0.2.1 20260101000032 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:0080/a 192.0.2.1 20260101000033 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/33?from=here

payload
http://example.org:443/ 192.0.2.1 20260101000034 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com:80/ 192.0.2.1 20260101000035 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
ftp://ftp.example.org:21/pub/readme.txt 192.0.2.1 20260101000036 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
ws://example.org:80/socket 192.0.2.1 20260101000037 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/37?from=here

payload
wss://example.org:443/socket 192.0.2.1 20260101000038 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:8080/ 192.0.2.1 20260101000039 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org:08080/ 192.0.2.1 20260101000040 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:65535/ 192.0.2.1 20260101000041 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/41?from=here

payload
http://example.org:65536/ 192.0.2.1 20260101000042 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:99999999999999999999/ 192.0.2.1 20260101000043 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
foo://example.org:/x 192.0.2.1 20260101000044 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
foo://example.org:80/x 192.0.2.1 20260101000045 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/45?from=here

payload
http://example.org:8a/ 192.0.2.1 20260101000046 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:port/ 192.0.2.1 20260101000047 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org:-1/ 192.0.2.1 20260101000048 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:80:80/ 192.0.2.1 20260101000049 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/49?from=here

payload
http://example.org:8０/ 192.0.2.1 20260101000050 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org:+80/ 192.0.2.1 20260101000051 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org 192.0.2.1 20260101000052 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com?q=1 192.0.2.1 20260101000053 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/53?from=here

payload
https://example.com#top 192.0.2.1 20260101000054 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/? 192.0.2.1 20260101000055 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/# 192.0.2.1 20260101000056 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/?# 192.0.2.1 20260101000057 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/57?from=here

payload
https://example.org./ 192.0.2.1 20260101000058 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org// 192.0.2.1 20260101000059 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.org/a//b 192.0.2.1 20260101000100 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/a 192.0.2.1 20260101000101 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/61?from=here

payload
https://example.org/a/ 192.0.2.1 20260101000102 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://@example.org/ 192.0.2.1 20260101000103 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://:@example.org/ 192.0.2.1 20260101000104 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://user:@example.org/ 192.0.2.1 20260101000105 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/65?from=here

payload
http:///path 192.0.2.1 20260101000106 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http:// 192.0.2.1 20260101000107 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.org:8443 192.0.2.1 20260101000108 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
foo://example.org 192.0.2.1 20260101000109 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/69?from=here

payload
http://example.org/a/./b 192.0.2.1 20260101000110 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/../b 192.0.2.1 20260101000111 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/../a 192.0.2.1 20260101000112 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/b/.. 192.0.2.1 20260101000113 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/73?from=here

payload
http://example.org/a/b/. 192.0.2.1 20260101000114 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/b/../../../../c 192.0.2.1 20260101000115 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/. 192.0.2.1 20260101000116 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/.. 192.0.2.1 20260101000117 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/77?from=here

payload
http://example.org/... 192.0.2.1 20260101000118 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/.../b 192.0.2.1 20260101000119 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a/.b 192.0.2.1 20260101000120 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/b. 192.0.2.1 20260101000121 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/81?from=here

payload
http://example.org/%2E/a 192.0.2.1 20260101000122 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/%2e%2E/b 192.0.2.1 20260101000123 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a/.%2e/b 192.0.2.1 20260101000124 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a/..;x/b 192.0.2.1 20260101000125 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/85?from=here

payload
http://example.org/a?b/../c 192.0.2.1 20260101000126 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a#b/../c 192.0.2.1 20260101000127 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a//../b 192.0.2.1 20260101000128 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/.//a 192.0.2.1 20260101000129 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/89?from=here

payload
foo:/a/..//b 192.0.2.1 20260101000130 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
foo:a/../b 192.0.2.1 20260101000131 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
mailto:a/../b@example.org 192.0.2.1 20260101000132 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%61bc 192.0.2.1 20260101000133 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/93?from=here

payload
http://example.org/%7Euser/ 192.0.2.1 20260101000134 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%7euser/ 192.0.2.1 20260101000135 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a%2db%5fc%2ed 192.0.2.1 20260101000136 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%c3%a9 192.0.2.1 20260101000137 text/html 86
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/97?from=here

payload
http://example.org/%C3%A9 192.0.2.1 20260101000138 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%e2%82%ac?p=%e2%82%ac 192.0.2.1 20260101000139 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a%2fb 192.0.2.1 20260101000140 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a%2Fb 192.0.2.1 20260101000141 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/101?from=here

payload
http://example.org/%25 192.0.2.1 20260101000142 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%2541 192.0.2.1 20260101000143 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/a+b 192.0.2.1 20260101000144 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a%20b 192.0.2.1 20260101000145 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/105?from=here

payload
http://example.org/a%2Bb 192.0.2.1 20260101000146 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/?q=%41%42&r=%3d%26 192.0.2.1 20260101000147 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/#%66rag 192.0.2.1 20260101000148 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://ex%61mple.org/ 192.0.2.1 20260101000149 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/109?from=here

payload
http://EX%41MPLE.org/ 192.0.2.1 20260101000150 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://%65xample.org/ 192.0.2.1 20260101000151 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example%2Eorg/ 192.0.2.1 20260101000152 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://us%65r@example.org/ 192.0.2.1 20260101000153 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/113?from=here

payload
http://example.org/%00 192.0.2.1 20260101000154 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%FF 192.0.2.1 20260101000155 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/%ff%fe 192.0.2.1 20260101000156 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%E9t%E9 192.0.2.1 20260101000157 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/117?from=here

payload
http://example.org/100% 192.0.2.1 20260101000158 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/100%-off 192.0.2.1 20260101000159 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/%zz 192.0.2.1 20260101000200 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%u0442 192.0.2.1 20260101000201 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/121?from=here

payload
http://example.org/50%25 192.0.2.1 20260101000202 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/?q=90% 192.0.2.1 20260101000203 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/%4 192.0.2.1 20260101000204 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/%%41 192.0.2.1 20260101000205 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/125?from=here

payload
http://example.org/#50% 192.0.2.1 20260101000206 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://exa%mple.org/ 192.0.2.1 20260101000207 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/{id}/edit 192.0.2.1 20260101000208 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a\b 192.0.2.1 20260101000209 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/129?from=here

payload
http:\\example.org\a 192.0.2.1 20260101000210 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a^b 192.0.2.1 20260101000211 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/`a` 192.0.2.1 20260101000212 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/"quoted" 192.0.2.1 20260101000213 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/133?from=here

payload
http://example.org/?q[]=1&q[]=2 192.0.2.1 20260101000214 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/a[1] 192.0.2.1 20260101000215 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.org/?f={"a":[1,2]} 192.0.2.1 20260101000216 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example.org/#a#b 192.0.2.1 20260101000217 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/137?from=here

payload
http://bücher.example.org/ 192.0.2.1 20260101000218 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://BÜCHER.example.org/ 192.0.2.1 20260101000219 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://xn--bcher-kva.example.org/ 192.0.2.1 20260101000220 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://XN--BCHER-KVA.example.org/ 192.0.2.1 20260101000221 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/141?from=here

payload
http://b%C3%BCcher.example.org/ 192.0.2.1 20260101000222 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://b%c3%bccher.example.org:80/ 192.0.2.1 20260101000223 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://straße.example.org/ 192.0.2.1 20260101000224 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--strae-oqa.example.org/ 192.0.2.1 20260101000225 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/145?from=here

payload
http://strasse.example.org/ 192.0.2.1 20260101000226 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://книги.example.org/ 192.0.2.1 20260101000227 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://КНИГИ.example.org/ 192.0.2.1 20260101000228 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--c1abvm5c.example.org/ 192.0.2.1 20260101000229 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/149?from=here

payload
http://日本語.example.org/ 192.0.2.1 20260101000230 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--wgv71a119e.example.org/ 192.0.2.1 20260101000231 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://新闻。example。org/ 192.0.2.1 20260101000232 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://신문.example.org/ 192.0.2.1 20260101000233 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/153?from=here

payload
http://أخبار.example.org/ 192.0.2.1 20260101000234 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--mgba1eg3c.example.org/ 192.0.2.1 20260101000235 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://ｅｘａｍｐｌｅ.org/ 192.0.2.1 20260101000236 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://example．org/ 192.0.2.1 20260101000237 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/157?from=here

payload
http://é.example.org/ 192.0.2.1 20260101000238 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://é.example.org/ 192.0.2.1 20260101000239 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://ﬁsh.example.org/ 192.0.2.1 20260101000240 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://☃.example.org/ 192.0.2.1 20260101000241 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/161?from=here

payload
http://xn--n3h.example.org/ 192.0.2.1 20260101000242 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--.example.org/ 192.0.2.1 20260101000243 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://xn--a.example.org/ 192.0.2.1 20260101000244 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://xn--zzzzzzzzzzzz.example.org/ 192.0.2.1 20260101000245 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/165?from=here

payload
http://xn--example-.example.org/ 192.0.2.1 20260101000246 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://a_b.example.org/ 192.0.2.1 20260101000247 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://-a.example.org/ 192.0.2.1 20260101000248 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://a-.example.org/ 192.0.2.1 20260101000249 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/169?from=here

payload
http://ab--cd.example.org/ 192.0.2.1 20260101000250 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://a..example.org/ 192.0.2.1 20260101000251 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://%E2%98%83.example.org/ 192.0.2.1 20260101000252 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://%FF.example.org/ 192.0.2.1 20260101000253 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/173?from=here

payload
http://a%2Fb.example.org/ 192.0.2.1 20260101000254 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://a%20b.example.org/ 192.0.2.1 20260101000255 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
foo://bücher.example.org/ 192.0.2.1 20260101000256 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
foo://b%C3%BCcher.example.org/ 192.0.2.1 20260101000257 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/177?from=here

payload
http://faß.example.org/ 192.0.2.1 20260101000258 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://ςίγμα.example.org/ 192.0.2.1 20260101000259 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://xn--4xa7e.example.org/ 192.0.2.1 20260101000300 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example.org/ 192.0.2.1 20260101000301 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/181?from=here

payload
https://example.com/новости/погода 192.0.2.1 20260101000302 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/%D0%BF%D0%BE%D0%B3%D0%BE%D0%B4%D0%B0 192.0.2.1 20260101000303 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/%d0%bd%d0%be%d0%b2%d0%be%d1%81%d1%82%d0%b8/погода 192.0.2.1 20260101000304 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/поиск?запрос=карта 192.0.2.1 20260101000305 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/185?from=here

payload
https://example.com/百科/中国 192.0.2.1 20260101000306 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/検索?q=東京&lang=ja 192.0.2.1 20260101000307 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/뉴스/서울 192.0.2.1 20260101000308 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/أخبار/مصر 192.0.2.1 20260101000309 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/189?from=here

payload
https://example.com/?q=كتاب 192.0.2.1 20260101000310 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/עברית 192.0.2.1 20260101000311 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/über-uns/öffnungszeiten 192.0.2.1 20260101000312 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/größe?maß=5 192.0.2.1 20260101000313 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/193?from=here

payload
https://example.com/café 192.0.2.1 20260101000314 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/Ελλάδα 192.0.2.1 20260101000315 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/हिन्दी 192.0.2.1 20260101000316 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/ไทย 192.0.2.1 20260101000317 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/197?from=here

payload
https://example.com/Việt 192.0.2.1 20260101000318 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/😀 192.0.2.1 20260101000319 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/?emoji=👩‍🚀 192.0.2.1 20260101000320 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/#раздел-2 192.0.2.1 20260101000321 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/201?from=here

payload
https://example.com/a b 192.0.2.1 20260101000322 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/​zero 192.0.2.1 20260101000323 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/‮reversed 192.0.2.1 20260101000324 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/‏mark 192.0.2.1 20260101000325 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/205?from=here

payload
https://example.com/� 192.0.2.1 20260101000326 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/﷐ 192.0.2.1 20260101000327 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/ 192.0.2.1 20260101000328 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/?private= 192.0.2.1 20260101000329 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/209?from=here

payload
https://example.com/󠀁 192.0.2.1 20260101000330 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/ﬀ 192.0.2.1 20260101000331 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/Å 192.0.2.1 20260101000332 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.com/Å 192.0.2.1 20260101000333 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/213?from=here

payload
https://example.com/﻿bom 192.0.2.1 20260101000334 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://münchen@example.com/ 192.0.2.1 20260101000335 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.com/x%E2%80%AEy 192.0.2.1 20260101000336 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/shop/item?id=1 192.0.2.1 20260101000339 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
HTTPS://example.net/shop/item?id=1 192.0.2.1 20260101000340 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://EXAMPLE.net:443/shop/item?id=1 192.0.2.1 20260101000341 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/221?from=here

payload
https://example.net/shop/./item?id=1 192.0.2.1 20260101000342 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/shop/x/../item?id=1 192.0.2.1 20260101000343 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.net/sh%6Fp/item?id=1 192.0.2.1 20260101000344 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net:/shop/item?id=%31 192.0.2.1 20260101000345 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/225?from=here

payload
https://example.net/shop/item?id=1#reviews 192.0.2.1 20260101000346 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/Shop/item?id=1 192.0.2.1 20260101000347 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://example.net/shop/item?id=1 192.0.2.1 20260101000348 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://www.example.net/shop/item?id=1 192.0.2.1 20260101000349 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/229?from=here

payload
https://example.net/shop/item?id=1& 192.0.2.1 20260101000350 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/shop/item/?id=1 192.0.2.1 20260101000351 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.net/K%c3%b6ln 192.0.2.1 20260101000352 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.net/Köln 192.0.2.1 20260101000353 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/233?from=here

payload
https://example.net/./Köln 192.0.2.1 20260101000354 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
HTTPS://EXAMPLE.NET:443/K%c3%b6ln 192.0.2.1 20260101000355 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.net/Köln 192.0.2.1 20260101000356 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
example.org:8080/a 192.0.2.1 20260101000357 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/237?from=here

payload
a:b 192.0.2.1 20260101000358 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[2001:DB8::1]/ 192.0.2.1 20260101000359 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[2001:db8:0:0:0:0:0:1]/ 192.0.2.1 20260101000400 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[2001:0db8:0000:0000:0000:0000:0000:0001]/ 192.0.2.1 20260101000401 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/241?from=here

payload
http://[2001:db8::0:1]:80/ 192.0.2.1 20260101000402 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[2001:db8:0:0:1:0:0:1]/ 192.0.2.1 20260101000403 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[2001:db8::1:0:0:1]/ 192.0.2.1 20260101000404 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[::1]/ 192.0.2.1 20260101000405 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/245?from=here

payload
http://[::]/ 192.0.2.1 20260101000406 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[::ffff:192.0.2.1]/ 192.0.2.1 20260101000407 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[::FFFF:C000:201]/ 192.0.2.1 20260101000408 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[64:ff9b::192.0.2.33]/ 192.0.2.1 20260101000409 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/249?from=here

payload
http://[v1.fe80::a]/ 192.0.2.1 20260101000410 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[V1.FE80::A]/ 192.0.2.1 20260101000411 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[fe80::1%25eth0]/ 192.0.2.1 20260101000412 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[fe80::1%eth0]/ 192.0.2.1 20260101000413 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/253?from=here

payload
http://[2001:db8::1/ 192.0.2.1 20260101000414 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://2001:db8::1/ 192.0.2.1 20260101000415 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[2001:db8::1]x/ 192.0.2.1 20260101000416 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[2001:db8:::1]/ 192.0.2.1 20260101000417 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/257?from=here

payload
http://[1:2:3:4:5:6:7:8:9]/ 192.0.2.1 20260101000418 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[12345::]/ 192.0.2.1 20260101000419 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://[::256.0.2.1]/ 192.0.2.1 20260101000420 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://[]/ 192.0.2.1 20260101000421 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/261?from=here

payload
http://192.0.2.1:80/ 192.0.2.1 20260101000422 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://192.0.2.256/ 192.0.2.1 20260101000423 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
http://0300.0.2.1/ 192.0.2.1 20260101000424 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://0xC0000201/ 192.0.2.1 20260101000425 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/265?from=here

payload
http://192.0.513/ 192.0.2.1 20260101000426 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
http://3221225985/ 192.0.2.1 20260101000427 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
file:///etc/hosts 192.0.2.1 20260101000428 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
file:/etc/hosts 192.0.2.1 20260101000429 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/269?from=here

payload
file://localhost/etc/hosts 192.0.2.1 20260101000430 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
file://LOCALHOST/etc/hosts 192.0.2.1 20260101000431 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
FILE:///etc/./hosts 192.0.2.1 20260101000432 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
file://server.example.org/share/a 192.0.2.1 20260101000433 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/273?from=here

payload
file:///C:/Temp/a.txt 192.0.2.1 20260101000434 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
file:etc/hosts 192.0.2.1 20260101000435 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
urn:isbn:0451450523 192.0.2.1 20260101000436 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
URN:ISBN:0451450523 192.0.2.1 20260101000437 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/277?from=here

payload
urn:ISBN:0451450523 192.0.2.1 20260101000438 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6 192.0.2.1 20260101000439 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
urn:example:a%2Fb 192.0.2.1 20260101000440 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
urn:example:a%2fb 192.0.2.1 20260101000441 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/281?from=here

payload
urn:example:foo-bar-baz-qux?+CCResolve:cc=uk 192.0.2.1 20260101000442 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
urn:example:weather?=op=map&lat=39.56 192.0.2.1 20260101000443 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
urn:example:a#b 192.0.2.1 20260101000444 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
mailto:user@example.org 192.0.2.1 20260101000445 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/285?from=here

payload
mailto:user%40example.org 192.0.2.1 20260101000446 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
mailto:user@example.org?subject=Hello%20there 192.0.2.1 20260101000447 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
tel:+1-201-555-0123 192.0.2.1 20260101000448 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
data:text/plain,hello%20world 192.0.2.1 20260101000449 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/289?from=here

payload
data:text/html;charset=utf-8,%3Cp%3E 192.0.2.1 20260101000450 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
javascript:void(0) 192.0.2.1 20260101000451 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
about:blank 192.0.2.1 20260101000452 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
ldap://[2001:db8::7]/c=GB?objectClass?one 192.0.2.1 20260101000453 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/293?from=here

payload
news:comp.lang.example 192.0.2.1 20260101000454 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
git+ssh://git@example.org:22/repo.git 192.0.2.1 20260101000455 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
dns:www.example.org 192.0.2.1 20260101000456 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
tag:example.org,2024:a 192.0.2.1 20260101000457 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/297?from=here

payload
view-source:http://example.org/ 192.0.2.1 20260101000458 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
jar:file:///a.jar!/b 192.0.2.1 20260101000459 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://blog.example.net/island-river 192.0.2.1 20260101000500 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/window-coffee.php 192.0.2.1 20260101000501 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/301?from=here

payload
https://news.example.org/garden-coffee/bridge-market-music/silver/?id=1689 192.0.2.1 20260101000502 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/river-river-coffee/planet-castle-letter/winter-coffee/?q=music+engine&page=5 192.0.2.1 20260101000503 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://blog.example.net/market-camera/planet/castle/?id=8012 192.0.2.1 20260101000504 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/silver-silver/river-river/letter-island?q=engine+summer&page=5 192.0.2.1 20260101000505 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/305?from=here

payload
https://blog.example.net/winter-number.php 192.0.2.1 20260101000506 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://shop.example.test/river-window/market-music-window.html 192.0.2.1 20260101000507 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.org/coffee/?id=198 192.0.2.1 20260101000508 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/window.html 192.0.2.1 20260101000509 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/309?from=here

payload
https://shop.example.test/winter-winter-music/window-travel-camera/travel-school 192.0.2.1 20260101000510 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/river/number/number.html 192.0.2.1 20260101000511 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://shop.example.test/letter-river/summer.html 192.0.2.1 20260101000512 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://news.example.org/island/castle.html 192.0.2.1 20260101000513 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/313?from=here

payload
https://blog.example.net/planet-planet-number/?q=number+winter&page=4 192.0.2.1 20260101000514 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/camera/letter-travel/camera-window-engine.html 192.0.2.1 20260101000515 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://shop.example.test/coffee-number?q=silver+music&page=2 192.0.2.1 20260101000516 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://www.example.com/window/school-forest-camera.php 192.0.2.1 20260101000517 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/317?from=here

payload
https://www.example.com/silver.php?id=2395 192.0.2.1 20260101000518 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://www.example.com/music-garden-camera/music-summer-music/forest/ 192.0.2.1 20260101000519 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://news.example.org/planet-forest/engine.html 192.0.2.1 20260101000520 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://news.example.org/planet-bridge-castle 192.0.2.1 20260101000521 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/321?from=here

payload
https://news.example.org/island-planet.php 192.0.2.1 20260101000522 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/planet 192.0.2.1 20260101000523 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://blog.example.net/planet-letter-engine/planet-bridge-engine/?q=coffee+island&page=2 192.0.2.1 20260101000524 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://shop.example.test/island/river-island 192.0.2.1 20260101000525 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/325?from=here

payload
https://shop.example.test/camera-winter-letter/?id=2646 192.0.2.1 20260101000526 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://shop.example.test/school-summer 192.0.2.1 20260101000527 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://shop.example.test/number-planet-river/camera 192.0.2.1 20260101000528 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/forest-island.html?q=coffee+bridge&page=9 192.0.2.1 20260101000529 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/329?from=here

payload
https://blog.example.net/river-island.php?id=1187 192.0.2.1 20260101000530 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/river/letter/camera-window.html 192.0.2.1 20260101000531 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://www.example.com/travel/number-planet/?id=4751 192.0.2.1 20260101000532 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://blog.example.net/garden-garden/ 192.0.2.1 20260101000533 text/html 87
HTTP/1.1 301 Sample
Content-Type: text/html
Location: /moved/333?from=here

payload
https://shop.example.test/planet-bridge/school-coffee-coffee/forest/ 192.0.2.1 20260101000534 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
https://example.org/bridge-window-river/forest-bridge-island/silver-island?q=market+market&page=5 192.0.2.1 20260101000535 text/html 55
HTTP/1.1 404 Sample
Content-Type: text/html

payload
https://example.org/the-last-line-has-no-end 192.0.2.1 20260101000536 text/html 70
HTTP/1.1 200 Sample
Content-Type: text/html; charset=UTF-8

payload
