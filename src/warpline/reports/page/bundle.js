"use strict";(()=>{var _t="http://www.w3.org/2000/svg";function Be(s,e,t){for(let[n,r]of Object.entries(e))typeof r=="function"?s.addEventListener(n.replace(/^on/,""),r):r===!0?s.
setAttribute(n,""):r!==void 0&&r!==!1&&s.setAttribute(n,String(r));s.append(...t)}function d(s,e={},...t){let n=document.createElement(s);return Be(n,e,t),n}function M(s,e={},...t){
let n=document.createElementNS(_t,s);return Be(n,e,t),n}function j(s){let e=document.getElementById(s);if(!e)throw new Error(`the page has no #${s}`);return e}var St=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],Rt=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],Pt=.9995,We=new Intl.NumberFormat("en",{maximumFractionDigits:0});function Ke(s){
let e=Math.abs(s);return e>=99.95?We.format(s):e>=9.995?s.toFixed(1):s.toFixed(2)}function ze(s,e,t){for(let[n,r]of e)if(Math.abs(s)>=n*Pt)return`${Ke(s/n)} ${r}`;
return`${s.toFixed(0)} ${t}`}var E=s=>ze(s,St,"ns"),C=s=>ze(s,Rt,"B"),O=(s,e)=>e?`${(100*s/e).toFixed(1)} %`:"–",D=s=>`${Ke(s)}×`,S=s=>We.format(s),ee=(s,e,t=`${e}\
s`)=>`${S(s)} ${s===1?e:t}`;function Ct(s,{launches:e,cpu_ns:t,gpu_ns:n,fewer:r}){let o=e*t,i=e*n,c=e===s.launches&&t===s.cpu_ns&&n===s.gpu_ns;return{dispatch_ns:o,work_ns:i,step_ns:c&&s.step_ns!==
null?s.step_ns:Math.max(o,i),graph_ns:c&&s.graph_ns!==null?s.graph_ns:s.graph_launch_ns+i+e*s.graph_gap_ns,fused_ns:Math.max(o/r,i),bound:o>i?"CPU":"GPU",crossover:t?
i/t:null}}function Xe(s,e){let t=d("div",{role:"status","aria-live":"polite"}),n={launches:s.launches,cpu_ns:s.cpu_ns,gpu_ns:s.gpu_ns,fewer:4},r=(l,u,h,m)=>{let p=b=>String(
Math.round(b/h*100)/100),g=n[u],y=d("input",{type:"number",min:m,step:"any",value:p(g)});return y.addEventListener("input",()=>{let b=Number(y.value);y.setAttribute(
"aria-invalid",String(!(Number.isFinite(b)&&b>=m))),!(!Number.isFinite(b)||b<m)&&(n[u]=y.value===p(g)?g:b*h,a())}),[d("label",{},`${l} `,y),y]},o=[r("Launches p\
er step","launches",1,1),r("CPU time per launch, µs","cpu_ns",1e3,0),r("GPU time per launch, µs","gpu_ns",1e3,0),r("Fusion: times fewer launches","fewer",1,1)],
i=o.map(([,l])=>l.value),c=d("button",{type:"button",onclick:()=>o.forEach(([,l],u)=>{l.value=i[u]??"",l.dispatchEvent(new Event("input"))})},"This trace");function a(){
let l=Ct(s,n),u=(m,p)=>[d("dt",{},m),d("dd",{},p)],h=m=>`${E(m)} (${D(l.step_ns/Math.max(m,1))})`;t.replaceChildren(d("p",{class:"strong"},`Bound by ${l.bound===
"CPU"?"dispatch on the CPU":"the GPU"}: a step takes ${E(l.step_ns)}.`),d("dl",{},...u("to dispatch",E(l.dispatch_ns)),...u("to run",E(l.work_ns)),...l.crossover===
null?[]:u("crossover",`the GPU is the limit below ${S(l.crossover)} launches for the same GPU time`),...u("as one CUDA graph",h(l.graph_ns)),...u(`with ${n.fewer}\
 times fewer launches`,h(l.fused_ns))))}e.append(d("div",{class:"budget"},d("div",{class:"fields"},...o.map(([l])=>l),d("p",{},c)),t)),a()}var te=18,Ht=7.1,Ot=.6;function It(s,e){let t=new Map;s.parent.forEach((l,u)=>t.set(l,[...t.get(l)??[],u]));let n=l=>s.total_ns[l]??0;for(let l of t.values())l.
sort((u,h)=>n(h)-n(u));let r=[],o=[];for(let l=e;l>=0;l=s.parent[l]??-1)o.unshift(l);o.forEach((l,u)=>r.push({node:l,depth:u,left:0,width:1}));let i=e>=0?[e]:t.
get(-1)??[],c=i.reduce((l,u)=>l+n(u),0)||1,a=(l,u,h)=>{for(let m of l){let p=n(m)/c;m!==e&&r.push({node:m,depth:u,left:h,width:p}),a(t.get(m)??[],u+1,h),h+=p}};
return a(i,Math.max(o.length-1,0),0),r}function Ye(s,e){let t=d("select",{"aria-label":"Flame graph"},...s.flames.map((g,y)=>d("option",{value:y},`${g.name}, ${E(
_e(g))}`))),n=d("input",{type:"search",placeholder:"Highlight","aria-label":"Highlight frames"}),r=d("button",{type:"button"},"Whole graph"),o=d("p",{class:"qui\
et",role:"status"}),i=M("svg",{class:"flame",role:"group","aria-label":"Flame graph. Arrow keys move, Enter zooms, Escape zooms out."});e.append(d("p",{class:"t\
ools"},t," ",n," ",r),i,o,d("p",{class:"quiet"},"Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call\
, so nothing is counted twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));let c=-1,a=-1;function l(){
let g=s.flames[Number(t.value)];if(!g)return;let y=Math.max(i.clientWidth||e.clientWidth||1e3,300),b=n.value.toLowerCase(),f=It(g,c).filter(x=>x.width*y>=Ot);new Set(
f.map(x=>x.node)).has(a)||(a=f[0]?.node??-1);let w=Math.max(0,...f.map(x=>x.depth));i.setAttribute("viewBox",`0 0 ${y} ${(w+1)*te}`);let L=i.contains(document.activeElement);
i.replaceChildren(...f.map(x=>u(g,x,y,b))),L&&m(),r.disabled=c<0,o.textContent=c<0?`${g.name}: ${E(_e(g))}`:ae(g,c)}function u(g,y,b,f){let k=g.frames[g.frame[y.
node]??0]??"",w=y.left*b,L=y.width*b,x=Math.floor((L-6)/Ht),A=Nt(k),$=x<3?"":A.length<=x?A:`${A.slice(0,x-1)}…`,P=f!==""&&k.toLowerCase().includes(f),H=()=>{c=
y.node,a=y.node,l()},R=M("g",{class:`frame ${Dt(k)}${P?" match":f?" faded":""}`,"data-node":y.node,tabindex:y.node===a?0:-1,role:"button","aria-label":ae(g,y.node),
onclick:H,onfocus:()=>{a=y.node,o.textContent=ae(g,y.node)}},M("title",{},ae(g,y.node)),M("rect",{x:w,y:y.depth*te,width:Math.max(L-.5,.3),height:te-1}),...$?[M(
"text",{x:w+3,y:y.depth*te+te/2},$)]:[]);return R.addEventListener("keydown",I=>{h(g,y,I,H)}),R}function h(g,y,b,f){let k=Ut(g,y.node,b.key);if(b.key==="Enter"||
b.key===" ")f();else if(b.key==="Escape")c=-1,l();else if(k!==null)k>=0&&i.querySelector(`[data-node="${k}"]`)&&(a=k,l());else return;b.preventDefault()}function m(){
i.querySelector(`[data-node="${a}"]`)?.focus()}let p=()=>{c=-1,l()};t.addEventListener("change",p),r.addEventListener("click",p),n.addEventListener("input",l),new ResizeObserver(
l).observe(e),l()}var _e=s=>s.parent.reduce((e,t,n)=>e+(t<0?s.total_ns[n]??0:0),0);function ae(s,e){let t=s.total_ns[e]??0;return`${s.frames[s.frame[e]??0]??""}\
: ${E(t)}, ${O(t,_e(s))}`}function Ut(s,e,t){let n=c=>s.total_ns[c]??0,r=s.parent[e]??-1,o=c=>s.parent.flatMap((a,l)=>a===c?[l]:[]).sort((a,l)=>n(l)-n(a));if(t===
"ArrowUp")return r;if(t==="ArrowDown")return o(e)[0]??-1;if(t!=="ArrowLeft"&&t!=="ArrowRight")return null;let i=o(r);return i[i.indexOf(e)+(t==="ArrowRight"?1:-1)]??
-1}var Nt=s=>s.replace(/^.*\/(?=[^/]*\(\d+\): )/,"").replace(/^void /,"");function Dt(s){return/\(\d+\): |^<built-in|^nn\.Module/.test(s)?"python":/^(cuda|cu|hip)[A-Z]/.
test(s)?"api":/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(s)?"op":/[<(]|kernel|gemm|^Mem(cpy|set)/i.test(s)?"kernel":"range"}var J=1e3,le=220,K=76,ce=12,Gt=12,qe=26;function Ft(s,e){let t=0,n=s.length;for(;t<n;){let r=t+n>>1;(s[r]??0)<=e?t=r+1:n=r}return Math.max(t-1,0)}function Ve(s,e,t){
for(let n of s.curves)e.append(...Bt(n,t))}function Bt(s,e){let t=s.times_ns[0]??0,n=Math.max(s.times_ns.at(-1)??0,t+1),r=Math.max(1,...s.allocated_bytes,...s.reserved_bytes),
o=s.allocated_bytes.indexOf(Math.max(...s.allocated_bytes)),i=f=>K+(f-t)/(n-t)*(J-K-ce),c=f=>le-qe-f/r*(le-Gt-qe),a=f=>f.map((k,w)=>`${w?`H${i(s.times_ns[w]??0).
toFixed(1)}V`:`M${i(t)} `}${c(k).toFixed(1)}`).join("")+`H${J-ce}`,l=d("p",{class:"quiet",role:"status"}),u=f=>{let k=s.reserved_bytes[f];l.textContent=`${E(s.times_ns[f]??
0)}: ${C(s.allocated_bytes[f]??0)} allocated${k===void 0?"":`, ${C(k)} reserved`}`},h=f=>{let k=b.getBoundingClientRect(),w=(f.clientX-k.left)/k.width*J;return Ft(
s.times_ns,t+(w-K)/(J-K-ce)*(n-t))},m=f=>{let k=s.times_ns[f]??0,w=(n-t)/50;e.goTo(k-w,k+w)},p=o,g=M("circle",{r:4,class:"mark",cx:0,cy:0}),y=f=>{p=f,g.setAttribute(
"cx",String(i(s.times_ns[f]??0))),g.setAttribute("cy",String(c(s.allocated_bytes[f]??0))),u(f)},b=M("svg",{viewBox:`0 0 ${J} ${le}`,class:"chart memory",role:"s\
lider",tabindex:0,"aria-label":`Memory of ${s.title}, peak ${C(s.allocated_bytes[o]??0)}`,"aria-valuemin":0,"aria-valuemax":s.times_ns.length-1,"aria-valuenow":o,
onmousemove:f=>y(h(f)),onclick:f=>m(h(f)),onkeydown:f=>{let{key:k}=f,w=k==="ArrowRight"?1:k==="ArrowLeft"?-1:0;w?(f.preventDefault(),y(Math.min(Math.max(p+w,0),
s.times_ns.length-1)),b.setAttribute("aria-valuenow",String(p)),b.setAttribute("aria-valuetext",l.textContent??"")):k==="Enter"&&m(p)}});for(let f of[0,.5,1])b.
append(M("path",{class:"grid",d:`M${K} ${c(f*r)}H${J-ce}`}),M("text",{x:K-8,y:c(f*r),class:"end dim"},C(f*r)));for(let f of[0,.25,.5,.75,1])b.append(M("text",{x:i(
t+f*(n-t)),y:le-8,class:f===1?"end dim":"middle dim"},E(t+f*(n-t))));return s.reserved_bytes.length&&b.append(M("path",{class:"reserved",d:a(s.reserved_bytes)})),
b.append(M("path",{class:"area",d:`${a(s.allocated_bytes)}V${c(0)}H${K}z`}),M("path",{class:"allocated",d:a(s.allocated_bytes)}),g),y(o),[d("h3",{},s.title,d("s\
mall",{},`peak ${C(s.allocated_bytes[o]??0)} allocated`)),b,l]}function je(s,e){e.append(d("dl",{class:"numbers"},...s.entries.flatMap(t=>[d("dt",{},t.number),d("dd",{},...t.value?[d("b",{},t.value)," "]:[],t.how)])))}var Wt=25,Kt=(s,e)=>{if(s===null||s==="")return"–";if(typeof s=="string")return s;switch(e){case"ns":return E(s);case"bytes":return C(s);case"bytes_per_second":
return`${C(s)}/s`;case"share":return O(s,1);case"gain":return D(s);case"count":return S(s);default:return String(Math.round(s*100)/100)}};function zt(s,e){let t=e.
falling?-1:1;return[...s].sort((n,r)=>{let o=n[e.column]??null,i=r[e.column]??null;return o===null||i===null?+(o===null)-+(i===null):typeof o=="number"&&typeof i==
"number"?t*(o-i):t*String(o).localeCompare(String(i),"en")})}function Xt(s,e){let t=e.toLowerCase().split(/\s+/).filter(Boolean);return s.filter(n=>{let r=n.filter(
o=>typeof o=="string").join(" ").toLowerCase();return t.every(o=>r.includes(o))})}function Yt(s,e,t){let n=e.flatMap((a,l)=>a.sums?[l]:[]),r=new Map;for(let a of s){
let l=String(a[t]??"–"),u=r.get(l)??[0,...n.map(()=>0)];u[0]=(u[0]??0)+1,n.forEach((h,m)=>{u[m+1]=(u[m+1]??0)+Number(a[h]??0)}),r.set(l,u)}let o=[t,...n].flatMap(
a=>e[a]??[]),[i,...c]=o;return{columns:[...i?[i]:[],{title:"rows",unit:"count",group:!1,sums:!0},...c],rows:[...r].map(([a,l])=>[a,...l])}}var Ze=[],Qe=s=>Ze.some(
e=>e(s));function et(s,e,t){for(let n of s.tables)e.append(qt(n,t))}function qt(s,e){let t=null,n=null,r=!1,o=`table-${s.title.toLowerCase().replace(/\W+/g,"-")}`,
i=d("input",{type:"search",placeholder:"Filter","aria-label":`Filter ${s.title.toLowerCase()}`,oninput:()=>b()}),c=s.columns.flatMap((w,L)=>w.group?[d("option",
{value:L},w.title)]:[]),a=d("select",{"aria-label":`Group ${s.title.toLowerCase()} by`,onchange:()=>{n=a.value===""?null:Number(a.value),t=null,b()}},d("option",
{value:""},"not grouped"),...c),l=d("span",{class:"quiet",role:"status"}),u=d("thead"),h=d("tbody"),m=d("button",{type:"button",onclick:()=>{r=!0,b()}},"Show al\
l"),p=d("caption",{class:"sr"},s.title),g=d("div",{class:"table-view",id:o},d("h3",{},s.title),d("p",{class:"tools"},i," ",...c.length?[d("label",{},"group by ",
a)," "]:[],l),d("div",{class:"wide"},d("table",{},p,u,h)),m),y=(w,L)=>{t={column:w,falling:t?.column===w?!t.falling:!L},b(w)};function b(w){let L=Xt(s.rows,i.value),
x=n===null?{columns:[...s.columns],rows:L}:Yt(L,s.columns,n),A=zt(x.rows,t??Je(x.columns)),$=r||n!==null?A:A.slice(0,Wt),P=t??Je(x.columns);u.replaceChildren(d(
"tr",{},...x.columns.map((R,I)=>f(R,I,P)))),h.replaceChildren(...$.map(R=>d("tr",{},...x.columns.map((I,W)=>k(R,I,W))))),w!==void 0&&u.querySelectorAll("button")[w]?.
focus();let H=s.left_out?`; ${ee(s.left_out,"shorter one")} not on this page`:"";l.textContent=`${ee($.length,n===null?"row":"group")} of ${S(n===null?s.rows.length:
A.length)}${H}`,m.hidden=$.length===A.length}function f(w,L,x){let A=w.unit==="text",$=x.column===L,P=d("button",{type:"button",class:"sort",onclick:()=>y(L,A)},
w.title,d("span",{"aria-hidden":"true"},$?x.falling?" ▾":" ▴":""));return d("th",{scope:"col",class:A?"":"number","aria-sort":$?x.falling?"descending":"asce\
nding":"none"},P)}function k(w,L,x){let A=Kt(w[x]??null,L.unit);if(x>0)return d("td",{class:L.unit==="text"?"":"number"},A);let $=n===null?()=>e.search(A):()=>{
i.value=A,n=null,a.value="",b()};return d("th",{scope:"row",class:"name"},d("button",{type:"button",class:"link",title:n===null?`${A}
Show it on the timeline`:"Show its rows",onclick:$},A))}return Ze.push(w=>s.rows.some(L=>L[0]===w)?(i.value=w,n=null,a.value="",b(),g.scrollIntoView({block:"nea\
rest"}),!0):!1),b(),g}function Je(s){let e=s.findIndex(t=>t.unit==="ns");return{column:Math.max(e,0),falling:e>=0}}var Z=1e3,G=520,ne=74,de=24,tt=20,ue=46;function Vt(s){let e=[...s.dots.map(o=>o.intensity),...s.compute.map(o=>o.value/s.memory.value)].map(Math.log10),t=[...s.
dots.map(o=>o.flops_per_second),...s.compute.map(o=>o.value)].map(Math.log10),n=o=>Math.floor(Math.min(...o)),r=o=>Math.ceil(Math.max(...o)+.05);return{x:[n(e),
r(e)],y:[n(t),r(t)]}}function st(s){let[e,t]=s>=1e12?[1e12,"T"]:s>=1e9?[1e9,"G"]:[1e6,"M"];return`${(s/e).toPrecision(3)} ${t}FLOP/s`}function ot(s,e,t){let{x:[
n,r],y:[o,i]}=Vt(s),c=x=>ne+(Math.log10(x)-n)/(r-n)*(Z-ne-de),a=x=>G-ue-(Math.log10(x)-o)/(i-o)*(G-tt-ue),l=M("svg",{viewBox:`0 0 ${Z} ${G}`,class:"chart roofli\
ne",role:"group","aria-label":`Roofline of ${s.device}, ${s.dots.length} ops. Arrow keys move between them.`});for(let x=n;x<=r;x++){let A=c(10**x);l.append(M("\
path",{class:"grid",d:`M${A} ${tt}V${G-ue}`}),M("text",{x:A,y:G-ue+16,class:"middle dim"},nt(x)))}for(let x=o;x<=i;x++){let A=a(10**x);l.append(M("path",{class:"\
grid",d:`M${ne} ${A}H${Z-de}`}),M("text",{x:ne-8,y:A,class:"end dim"},nt(x-12)))}l.append(M("text",{x:(ne+Z)/2,y:G-8,class:"middle dim"},"arithmetic intensity (\
FLOP per byte)"),M("text",{x:16,y:G/2,class:"middle dim",transform:`rotate(-90 16 ${G/2})`},"TFLOP/s"));let u=s.memory.value,h=Math.max(...s.compute.map(x=>x.value),
10**o),m=Math.max(10**n,10**o/u),p=[c(m),a(m*u)],g=[c(h/u),a(h)],y=Math.atan2(g[1]-p[1],g[0]-p[0])*180/Math.PI,[b,f]=[.72*p[0]+.28*g[0],.72*p[1]+.28*g[1]],k=[M(
"text",{x:b,y:f-11,class:"middle roof-name",transform:`rotate(${y} ${b} ${f})`},`memory ${C(u)}/s, ${s.memory.source}`)];l.append(M("path",{class:"roof",d:`M${p.
join(" ")}L${g.join(" ")}`}));let w=-1/0;for(let x of s.compute){let A=a(x.value);l.append(M("path",{class:"roof",d:`M${c(x.value/u)} ${A}H${Z-de}`})),A-w>=14&&
(k.push(M("text",{x:Z-de-4,y:A-9,class:"end roof-name"},`${x.name} ${st(x.value)}, ${x.source}`)),w=A)}let L=d("p",{class:"quiet",role:"status"},`${s.device}. T\
he drawn ops take ${O(s.drawn_ns,s.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);l.append(...jt(s,c,a,L,t),...k),
e.append(l,Jt(),L)}var nt=s=>s>=-4&&s<=4?String(10**s):`1e${s}`;function rt(s,e){let t=s.roof_pct===null?"":`, ${s.roof_pct.toFixed(1)} % of its roof`;return`${s.
name} ${s.shapes}: ${E(s.time_ns)} in ${S(s.calls)} calls (${O(s.time_ns,e)} of GPU time), ${st(s.flops_per_second)}${t}${s.bound?`, ${s.bound}-bound`:""}`}function jt(s,e,t,n,r){
let o=Math.max(...s.dots.map(a=>a.time_ns)),i=[],c=a=>{i.forEach((u,h)=>{u.setAttribute("tabindex",h===a?"0":"-1"),u.classList.toggle("selected",h===a)});let l=s.
dots[a];l&&(n.textContent=rt(l,s.total_ns))};return s.dots.forEach((a,l)=>{let u=()=>{c(l),Qe(a.name)||r.search(a.name)},h=g=>{let{key:y}=g,b=y==="ArrowRight"||
y==="ArrowDown"?1:y==="ArrowLeft"||y==="ArrowUp"?-1:0;if(b){g.preventDefault();let f=(l+b+i.length)%i.length;c(f),i[f]?.focus()}else(y==="Enter"||y===" ")&&(g.preventDefault(),
u())},m=rt(a,s.total_ns),p=3.5+13*Math.sqrt(a.time_ns/o);i.push(M("circle",{cx:e(a.intensity),cy:t(a.flops_per_second),r:p,class:`dot ${a.bound||"unknown-bound"}`,
tabindex:l===0?0:-1,role:"button","aria-label":m,onclick:u,onkeydown:h,onfocus:()=>c(l)},M("title",{},m)))}),i}function Jt(){let s=e=>d("li",{},M("svg",{class:"\
swatch",viewBox:"0 0 10 10","aria-hidden":"true"},M("circle",{cx:5,cy:5,r:5,class:`dot ${e}`})),`${e}-bound`);return d("ul",{class:"legend"},...["compute","memo\
ry","latency"].map(s))}var re=120,it=1e3,Zt=48;function at(s,e,t){let n=s.lengths_ns.length,r=Math.max(1,...s.lengths_ns),o=Math.min(Zt,it/n),i=Math.max(.5,o*.82),c=M("svg",{viewBox:`\
0 0 ${it} ${re}`,class:"steps",role:"img","aria-label":`${n} steps, the longest ${E(r)}`});s.lengths_ns.forEach((a,l)=>{let u=s.busy_ns[l]??0,h=s.starts_ns[l]??
0,m=l*o,p=a/r*re,g=u/r*re,y=M("g",{class:"step-bar",onclick:()=>t.goTo(h,h+a)},M("title",{},`step ${l}: ${E(a)}, GPU busy ${O(u,a)}`),M("rect",{x:m,width:i,y:re-
p,height:p,class:"part idle"}),M("rect",{x:m,width:i,y:re-g,height:g,class:"part compute"}));c.append(y)}),e.append(c,d("p",{class:"quiet"},"Height: length of t\
he step; dark: GPU busy. Click a step to see it on the timeline."))}var lt=1e3,U=70,Qt=190,z=22,Se=12;function en(s,e){return s.replayed.find(t=>t.fixes.length===e.size&&t.fixes.every(n=>e.has(n)))}function tn(s,e){let t=[...e].
sort((n,r)=>n-r).map(n=>`--fix ${s.fixes[n]?.name??""}`);return["warpline whatif",nn(s.file),...t].join(" ")}var nn=s=>/^[\w./:@%+=-]+$/.test(s)?s:`'${s.replaceAll(
"'",`'"'"'`)}'`;function ct(s,e){let t=new Set,n=[],r=d("div",{class:"whatif-answer",role:"status","aria-live":"polite"}),o=()=>{n.forEach((l,u)=>{l.checked=t.has(
u)}),r.replaceChildren(...rn(s,t))},i=l=>{t.clear();for(let u of l)t.add(u);o()},c=d("fieldset",{class:"fixes"},d("legend",{},"Fixes"));s.fixes.forEach((l,u)=>{
let h=d("input",{type:"checkbox",onchange:()=>{t.delete(u)||t.add(u),o()}});n.push(h);let m=s.planned.indexOf(u),p=[l.effort,l.confidence?`${l.confidence} confi\
dence`:"no finding alone",m>=0?`plan ${m+1}`:""].filter(Boolean);c.append(d("label",{title:l.claim},h,d("b",{},l.words),d("span",{class:"quiet"},` ${p.join(", ")}`)))});
let a=d("p",{class:"buttons"},d("button",{type:"button",onclick:()=>i([])},"None")," ",...s.planned.length?[d("button",{type:"button",onclick:()=>i(s.planned)},
"The plan")]:[]);e.append(d("div",{class:"whatif"},d("div",{},c,a),r)),i(s.planned.slice(0,1))}function rn(s,e){if(!e.size)return[Re(`The step takes ${E(s.step_ns)}\
 without a profiler. Tick a fix.`),Pe(s)];let t=en(s,e);if(!t)return[Re("This combination was not replayed for this page."),d("p",{class:"quiet"},"Fixes overlap\
, so their gains do not multiply. This command replays it:"),d("pre",{},tn(s,e)),Pe(s)];let{low:n,expected:r,high:o}=t.step_ns,i=s.step_ns/r;return[Re(`${E(s.step_ns)}\
 → ${E(r)}, ${D(i)}`),d("p",{class:"quiet"},`The 80 % range of the step is ${E(n)} to ${E(o)} (${D(s.step_ns/o)} to ${D(s.step_ns/n)}). `+(s.step_ns/o<1?"It i\
ncludes no gain.":"Replayed on this trace's graph, without a profiler.")),Pe(s,t)]}var Re=s=>d("p",{class:"strong"},s);function Pe(s,e){let t=Math.max(s.step_ns,
e?.step_ns.high??0),n=(lt-U-Qt)/t,r=M("svg",{viewBox:`0 0 ${lt} ${2*z+2*Se}`,class:"chart","aria-hidden":"true"}),o=(i,c,a,l)=>{let u=i*(z+Se)+2;r.append(M("tex\
t",{x:U-10,y:u+z/2,class:"end"},c),M("rect",{x:U,y:u,width:a*n,height:z,class:l}))};if(o(0,"now",s.step_ns,"before"),r.append(M("text",{x:U+s.step_ns*n+8,y:z/2+
2},E(s.step_ns))),e){let{low:i,expected:c,high:a}=e.step_ns,l=z+Se+2+z/2;o(1,"after",c,"after"),r.append(M("path",{class:"whisker",d:`M${U+i*n} ${l}H${U+a*n}M${U+
i*n} ${l-6}v12M${U+a*n} ${l-6}v12`})),r.append(M("text",{x:U+a*n+8,y:l},E(c)))}return r}var F=(s,e,t)=>({name:s,title:e,draw:t}),dt=[F("whatif","What if",ct),F("steps","Steps",at),F("tables","Tables",et),F("roofline","Roofline",ot),F("flame","Flame\
 graph",Ye),F("budget","Dispatch budget",Xe),F("memory","Memory",Ve),F("numbers","How each number was made",je)];var ut="warpline-theme",ht=()=>matchMedia("(prefers-color-scheme: dark)"),mt=[];function sn(){try{let s=localStorage.getItem(ut);return s==="light"||s==="dark"?
s:null}catch{return null}}var he=()=>(document.documentElement.dataset.theme??(ht().matches?"dark":"light"))==="dark";function pt(s){mt.push(s)}function ft(){let s=sn();
s&&(document.documentElement.dataset.theme=s);let e=d("button",{type:"button",class:"theme"}),t=()=>{let r=he()?"Light":"Dark";e.textContent=r,e.setAttribute("a\
ria-label",`${r} colours`)},n=()=>{t();for(let r of mt)r()};return e.addEventListener("click",()=>{let r=he()?"light":"dark";document.documentElement.dataset.theme=
r;try{localStorage.setItem(ut,r)}catch{}n()}),ht().addEventListener("change",n),t(),e}function on(s){let e=Uint8Array.fromBase64;if(e)return e.call(Uint8Array,s);let t=atob(s),n=new Uint8Array(t.length);for(let r=0;r<t.length;r++)n[r]=t.charCodeAt(
r);return n}async function Ce(s){let e=new Blob([s]).stream().pipeThrough(new DecompressionStream("deflate-raw"));return new Uint8Array(await new Response(e).arrayBuffer())}
async function me(s){let e=j(s),t=e.textContent??"";return e.remove(),Ce(on(t))}function pe(s){let e=4+new DataView(s.buffer).getUint32(0,!0);return{head:JSON.parse(
new TextDecoder().decode(s.subarray(4,e))),bytes:s,at:e}}async function gt(s){return JSON.parse(new TextDecoder().decode(await me(s)))}function He(s,e,t,n,r){let o=s[e++]??
0;for(let i=0;i<t;i++)n[r+i]=s[e+i];for(let i=1,c=256;i<o;i++,c*=256){let a=e+i*t;for(let l=0;l<t;l++)n[r+l]+=s[a+l]*c}return e+o*t}var Oe=s=>s%2?-(s+1)/2:s/2;var an=200,ln=1,cn=.25,fe=class s{constructor(e){this.timeline=e}timeline;waiting=0;asked=0;moved(){clearTimeout(this.waiting),this.waiting=setTimeout(()=>{this.
fetch()},an)}static areMissing(e,t,n,r){let o=n-t;return!e.least_ns||o/r>e.least_ns||o>cn*e.length_ns?!1:!e.detailed||t<e.detailed[0]||n>e.detailed[1]}async fetch(){
let e=this.timeline();if(!e)return;let{time:t,events:n}=e,r=Math.max(0,t.start),o=Math.min(t.length,t.end),i=++this.asked;if(!s.areMissing(n.head,r,o,e.picture.
width))return;let c=ln*(o-r),a=Math.floor(Math.max(0,r-c)),l=Math.ceil(Math.min(t.length,o+c)),u=await fetch(`rows?start=${a}&end=${l}`);if(!u.ok||i!==this.asked)
return;let{head:h,bytes:m,at:p}=pe(await Ce(new Uint8Array(await u.arrayBuffer())));e.replace(h,m,p)}};var bt=s=>{let e=/^(-?\d+)-(\d+)$/.exec(s??"");return e?[Number(e[1]),Number(e[2])]:void 0};function Ie(s){let e=new URLSearchParams(s.replace(/^#/,"")),t=bt(e.
get("at")),n=bt(e.get("range")),r=e.get("event");return{...t?{at:t}:{},...n?{range:n}:{},...r!==null&&/^\d+$/.test(r)?{event:Number(r)}:{}}}function yt({at:s,event:e,
range:t}){let n=r=>r.map(o=>Math.max(0,Math.round(o))).join("-");return[s?`at=${n(s)}`:"",e!==void 0?`event=${e}`:"",t?`range=${n(t)}`:""].filter(Boolean).join(
"&")}var dn=["gpu","idle","syncs"],un=["api","ops","ranges","python"],hn={api:"CUDA API",ops:"ops",ranges:"ranges",python:"Python"},se=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(e,t){
let{groups:n,head:r}=e,o=new Map;for(let c of n)o.set(c.track.thread,[...o.get(c.track.thread)??[],c]);for(let c of mn(n.map(a=>a.track.device))){this.add(22,{title:`\
GPU ${c}`});for(let a of dn)for(let l of n)l.track.device===c&&l.track.kind===a&&this.addGroup(l,l.track.label)}let i=this.y;for(let c of pn(n)){this.add(22,{title:r.
threads[c]??"thread"});for(let a of un)for(let l of o.get(c)??[])l.track.kind===a&&this.addGroup(l,hn[a]??a)}this.height=this.y,this.pinned=i>t*.5?0:i}of(e){return this.
rowOf.get(e)}add(e,t){let n={y:this.y,height:e,...t};this.rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=e}addGroup(e,t){let n=e.lanes,r=this.y;if(!n.length)
return;let o=n.length>1||e.track.kind==="python";for(let i of e.open?n:n.slice(0,14)){let c=i.depth===0;this.add(e.open?17:3,{lane:i,...c?{label:t}:{},...c&&o?{
toggles:e}:{},...e.open?{}:{thin:!0}})}this.y=Math.max(this.y,r+17)+5}},mn=s=>[...new Set(s.filter(e=>e!==null))].sort((e,t)=>e-t);function pn(s){let e=new Map;
for(let{track:n}of s){if(n.thread===null)continue;let r=e.get(n.thread)??{};r[n.kind]=(r[n.kind]??0)+n.lanes.reduce((o,i)=>o+i,0),e.set(n.thread,r)}return[...e].
map(([n,{api:r=0,ops:o=0,ranges:i=0,python:c=0}])=>({thread:n,main:+(r>0&&i+c>0),api:r,ops:o})).sort((n,r)=>r.main-n.main||r.api-n.api||r.ops-n.ops||n.thread-r.
thread).map(({thread:n})=>n)}var fn={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},gn={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},bn=new Set(["op","range","python","module"]),yn=new Set(["la\
unch","api","memset"]),vn=new Set(["matmul","attention"]),wn=new Set(["launch","wait","api_copy","allocate","api","op","range","python","module"]);function xn([
s,e,t]){let n=e*Math.cos(t*Math.PI/180),r=e*Math.sin(t*Math.PI/180),o=(s+.3963377774*n+.2158037573*r)**3,i=(s-.1055613458*n-.0638541728*r)**3,c=(s-.0894841775*n-
1.291485548*r)**3,a=l=>Math.round(255*Math.min(1,Math.max(0,l<=.0031308?12.92*l:1.055*l**(1/2.4)-.055)));return[a(4.0767416621*o-3.3077115913*i+.2309699292*c),a(
-1.2684380046*o+2.6097574011*i-.3413193965*c),a(-.0041960863*o-.7034186147*i+1.707614701*c)]}var be=s=>{let e=s.replace("#","");return[0,2,4].map(t=>parseInt(e.
slice(t,t+2),16))},vt=s=>`rgb(${s.join(" ")})`,X=s=>(255<<24|s[2]<<16|s[1]<<8|s[0])>>>0,Ue=(s,e,t)=>s.map((n,r)=>Math.round(n*t+e[r]*(1-t))),Ne=s=>be(gn[s]??"c9\
cdd2");function ge(s,e,t=.5){let[n,r,o]=fn[s],i=n;return e&&(i=bn.has(s)?1.22-i:yn.has(s)?i-.3:vn.has(s)?i+.05:i-.04),xn([i+(t-.5)*.055,r,o+(t*7%1-.5)*(wn.has(s)?
46:16)])}function kn(s){let e=2166136261;for(let t=0;t<s.length;t++)e=Math.imul(e^s.charCodeAt(t),16777619);return(e>>>8)%997/997}var Mn=s=>.299*s[0]+.587*s[1]+
.114*s[2]>135;function wt(s,e,t){let n=new Uint32Array(s.length),r=new Uint32Array(s.length),o=new Uint8Array(s.length);return s.forEach((i,c)=>{let a=i.cause!==
null?Ne(i.cause):null,l=a??ge(i.kind,e,kn(i.short||i.text));n[c]=X(l),r[c]=X(Ue(l,t,.24)),o[c]=Mn(a??ge(i.kind,e))?1:0}),{full:n,faded:r,darkInk:o}}var Y='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function xt(){let s=getComputedStyle(document.documentElement),e=r=>s.getPropertyValue(
`--${r}`).trim(),t={paper:e("paper"),ink:e("ink"),dim:e("dim"),rule:e("rule"),grid:e("grid"),band:e("band"),accent:e("accent")},n=r=>X(be(r));return{dark:he(),paper:be(
t.paper),css:t,pixels:{paper:n(t.paper),grid:n(t.grid),rule:n(t.rule)}}}var oe=class{constructor(e,t){this.events=e;this.width=t;this.line=new Uint32Array(t)}events;width;line;draw(e,t,n,r,o,i){let{events:c,line:a,width:l}=this,{start:u,
end:h,sum:m,name:p}=c,{beyond:g}=e,y=t+l/n,b=e.group.track.kind==="idle",f=c.after(e,t),k=!1;for(;f<g&&u[f]<y;){k=!0;let w=(u[f]-t)*n,L=(h[f]-t)*n;if(L-w>=1.5){
let R=Math.max(0,w),I=Math.min(l,L-w>4?L-1:L),W=r[p[f]],q=Math.ceil(R),V=Math.floor(I);V>q&&a.fill(W,q,V),q>R&&q<=l&&this.blend(q-1,W,q-R),I>V&&V<l&&this.blend(
V,W,I-V),i&&i(f,R,I),f++;continue}let x=Math.max(0,Math.floor(w)),A=t+(x+1)/n,$=c.leap(f,g,A);$-1>f&&(h[$-1]-u[$-1])*n>=1.5&&$--;let P=Math.max(0,h[$-1]-A)*n,H=(m[$]-
m[f])*n-P;if(x<l){let R=o!==null&&o.before[$]>o.before[f],I=$-f===1?f:R?En(o,f,$):c.longest(f,$),W=H>=1||R?1:b?Math.max(.08,H):Math.max(.25,Math.sqrt(Math.max(0,
H)));this.blend(x,r[p[I]],W),P>.05&&x+1<l&&this.blend(x+1,r[p[$-1]],Math.min(1,P))}f=$}return k}blend(e,t,n){let r=this.line[e],o=1-n,i=(t>>>16&255)*n+(r>>>16&255)*
o,c=(t>>>8&255)*n+(r>>>8&255)*o,a=(t&255)*n+(r&255)*o;this.line[e]=(255<<24|i<<16|c<<8|a)>>>0}};function En(s,e,t){let n=s.before[e],r=e,o=t-1;for(;r<o;){let i=r+
o>>>1;s.before[i+1]>n?o=i:r=i+1}return r}var Tn=26,Ln=110,ve=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d",{alpha:!1}),this.layout=new se(t,0),this.raster=
new oe(t,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;width=64;height=64;took={raster:0,draw:0};context;ratio=1;raster;image;pixels;ground;textWidths=new Map;resize(e,t,n){
this.width=Math.max(224,Math.floor(e)),this.height=Math.max(71,Math.floor(t)),this.ratio=n,this.canvas.width=this.width*n,this.canvas.height=this.height*n;let r=Math.
floor((this.width-160)*n),o=Math.floor((this.height-39)*n);this.image=new ImageData(r,o),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new oe(
this.events,r),this.ground=new Uint32Array(r),this.place()}place(){this.layout=new se(this.events,this.height-39)}x(e){return 160+(e-this.time.start)/this.time.
span*(this.width-160)}timeAt(e){return this.time.start+(e-160)/(this.width-160)*this.time.span}screenY(e){return 39+e.y-(e.y<this.layout.pinned?0:this.scroll)}box(e){
let t=this.layout.of(this.events.laneOf(e));if(!t)return null;let n=this.x(this.events.start[e]);return{x:n,right:Math.max(this.x(this.events.end[e]),n+2),y:this.
screenY(t),height:t.height-(t.thin?0:1),row:t}}rowAt(e){let{rows:t,pinned:n}=this.layout,r=e<39+n;return t.find(o=>o.y<n===r&&e>=this.screenY(o)&&e<this.screenY(
o)+Math.max(o.height,o.toggles?17:0))}eventAt(e,t){let n=e<160||t<39?void 0:this.rowAt(t),r=n?.lane;if(!r?.ready||t>=this.screenY(n)+n.height)return-1;let{events:o}=this,
i=this.time.span/(this.width-160),c=this.timeAt(e),a=o.after(r,c-i);if(a>=r.beyond||o.start[a]>c+i*1.5)return-1;let l=o.leap(a,r.beyond,c+i);return l-a<=1||o.start[a]<=
c&&o.end[a]>c&&o.duration(a)>i*2?a:o.longest(a,l)}draw(e,t,n,r){let o=performance.now(),{layout:i,context:c,ratio:a}=this;this.scroll=Math.max(0,Math.min(this.scroll,
i.height-(this.height-39)+8));let l=An(this.time.span,(this.width-160)/Ln),u=[];this.background(e,l);let{pinned:h}=i;for(let m of i.rows)m.y>=h&&this.lane(m,h,n,
r,u);for(let m of i.rows)m.y<h&&this.lane(m,0,n,r,u);c.setTransform(a,0,0,a,0,0),c.putImageData(this.image,Math.round(160*a),Math.round(39*a)),this.took.raster=
performance.now()-o,this.labels(u,e,t,r),this.ruler(e,l),this.names(e),this.took.draw=performance.now()-o}background(e,t){let{ground:n,pixels:r,time:o}=this,i=n.
length,c=this.image.height,a=i/o.span;n.fill(e.pixels.paper);for(let l=Math.ceil(o.start/t)*t;l<o.end;l+=t)n[Math.min(i-1,Math.floor((l-o.start)*a))]=e.pixels.grid;
for(let l of this.events.head.steps)for(let u of[l.start_ns,l.end_ns])u>o.start&&u<o.end&&(n[Math.floor((u-o.start)*a)]=e.pixels.rule);r.set(n,0);for(let l=1;l<
c;l*=2)r.copyWithin(l*i,0,Math.min(l,c-l)*i)}lane(e,t,n,r,o){if(!e.lane?.ready)return;let{ratio:i,raster:c,pixels:a}=this,l=c.width,u=this.image.height,h=this.screenY(
e)-39;if(h+e.height<=t||h>=this.height-39)return;c.line.set(this.ground);let m=Tn*i,p=e.thin?null:(b,f,k)=>{k-f>m&&o.push({i:b,left:f/i,right:k/i,y:h,floor:t})};
if(!c.draw(e.lane,this.time.start,l/this.time.span,n,r,p))return;let g=Math.max(Math.round(t*i),Math.round(h*i)),y=Math.min(u,Math.round((h+e.height-(e.thin?0:1))*
i));for(let b=g;b<y;b++)a.set(c.line,b*l)}fitted(e,t){let n=this.textWidths.get(e);if(n===void 0&&this.textWidths.set(e,n=this.context.measureText(e).width),n<=
t)return e;let r=Math.floor(e.length*(t-8)/n);return r<2?"":`${e.slice(0,r)}…`}labels(e,t,n,r){let{context:o,events:i}=this;o.font=`11px ${Y}`,o.textBaseline=
"middle",o.textAlign="left";let c=a=>r&&!r.names[a]?t.css.dim:n.darkInk[a]?"#14181d":"#fff";for(let a of["#14181d","#fff",t.css.dim]){o.fillStyle=a;for(let{i:l,
left:u,right:h,y:m,floor:p}of e){if(c(i.name[l])!==a||m+4<p)continue;let g=this.fitted(i.label(l),h-u-8);g&&o.fillText(g,160+u+4,39+m+17/2)}}}ruler(e,t){let{context:n,
time:r,width:o}=this,{steps:i}=this.events.head;n.fillStyle=e.css.paper,n.fillRect(0,0,o,39),n.fillStyle=e.css.dim;let[c,a]=r.end>=1e9?["s",1e9]:r.end>=1e6?["ms",
1e6]:["µs",1e3],l=Math.max(0,-Math.floor(Math.log10(t/a)+1e-9));for(let u=Math.ceil(r.start/t)*t;u<r.end;u+=t){let h=this.x(u);n.fillRect(Math.floor(h),16,1,6),
n.fillText(`${(u/a).toFixed(l)} ${c}`,h+4,22/2+1)}n.save(),n.beginPath(),n.rect(160,22,o-160,17),n.clip(),i.forEach((u,h)=>{let m=this.x(u.start_ns),p=this.x(u.
end_ns);if(p<160||m>o)return;n.fillStyle=e.css.band,n.fillRect(m,22,Math.max(1,p-m-1),14);let g=Math.max(m,160),y=this.fitted(`step ${h}  ${E(u.end_ns-u.start_ns)}`,
Math.min(p,o)-g-10);n.fillStyle=e.css.dim,y&&n.fillText(y,g+5,22+17/2-1)}),n.restore()}names(e){let{context:t,layout:n,height:r}=this,{rows:o,pinned:i}=n;t.fillStyle=
e.css.paper,t.fillRect(0,39,160,r),t.save(),t.beginPath(),t.rect(0,39+i,160,r),t.clip();for(let c of o)c.y>=i&&this.rowName(c,e);t.restore();for(let c of o)c.y<
i&&this.rowName(c,e);t.fillStyle=e.css.rule,t.fillRect(159,0,1,r),t.fillRect(0,38,this.width,1),i&&t.fillRect(0,39+i-1,this.width,1),t.fillStyle=e.css.dim,t.font=
`11px ${Y}`,this.events.head.steps.length&&t.fillText("steps",10,22+17/2-1)}rowName(e,t){let{context:n}=this,r=this.screenY(e);r>this.height||r+22<39||(e.title!==
void 0?(n.fillStyle=t.css.ink,n.font=`600 11px ${Y}`,n.fillText(this.fitted(e.title,142),10,r+22/2+2)):e.label&&(n.fillStyle=t.css.dim,n.font=`11px ${Y}`,n.fillText(
this.fitted(e.label,130),22,r+17/2),e.toggles&&n.fillText(e.toggles.open?"▾":"▸",10,r+17/2)))}};function An(s,e){let t=s/Math.max(2,e),n=10**Math.floor(Math.
log10(t)),r=t/n;return n*(r>5?10:r>2?5:r>1?2:1)}var N=64,$n=64,v=-1,we=class{head;start;end;sum;name;argument;link;counts;groups=[];lanes=[];longestOf;constructor(e){this.renew(e)}renew(e){let t=e.events,n=this.
groups.map(o=>o.open);this.head=e,this.start=new Float64Array(t),this.end=new Float64Array(t),this.sum=new Float64Array(t+1),this.name=e.names.length<65536?new Uint16Array(
t):new Uint32Array(t),this.argument=new Uint32Array(t),this.link=new Int32Array(t),this.counts=new Uint32Array(e.names.length),this.longestOf=new Uint32Array(Math.
ceil(t/N));let r=0;this.groups=e.tracks.map((o,i)=>{let c=[],a={track:o,lanes:c,open:n[i]??o.kind!=="python"};return o.lanes.forEach((l,u)=>c.push({group:a,depth:u,
first:r,beyond:r+=l,ready:!1})),a}),this.lanes=this.groups.flatMap(o=>o.lanes)}read(e,t,n,r){for(let o=n;o<r;o++)t=this.readPart(e,t,this.lanes.filter(i=>i.group.
track.part===o))}readPart(e,t,n){let{start:r,end:o,sum:i,name:c,argument:a,link:l,counts:u}=this,h=n[0]?.first??0,m=n[n.length-1]?.beyond??0,p=m-h;for(let b of[
r,o,c,a])t=He(e,t,p,b,h);let g=new Float64Array(p);t=He(e,t,p,g,0);for(let b=0,f=v;b<p;b++)l[h+b]=f+=Oe(g[b]);let y=i[h]??0;for(let b of n){let f=0;for(let k=b.
first;k<b.beyond;k++){let w=o[k];r[k]=f+=Oe(r[k]),o[k]=f+=w,i[k+1]=y+=w,u[c[k]]++}b.ready=!0}for(let b=Math.floor(h/N);b*N<m;b++){let f=Math.max(b*N,h);for(let k=f+
1,w=Math.min(m,(b+1)*N);k<w;k++)this.duration(k)>this.duration(f)&&(f=k);this.longestOf[b]=f}return t}duration(e){return this.end[e]-this.start[e]}text(e){return this.
head.names[this.name[e]].text}label(e){let t=this.head.names[this.name[e]];return t.short||t.text}after(e,t){let n=e.first,r=e.beyond;for(;n<r;){let o=n+r>>>1;this.
end[o]>t?r=o:n=o+1}return n}leap(e,t,n){let{start:r}=this,o=1,i=e;for(;i+o<t&&r[i+o]<n;)i+=o,o*=2;let c=Math.min(t,i+o);for(i++;i<c;){let a=i+c>>>1;r[a]<n?i=a+1:
c=a}return i}longest(e,t){let n=e,r=this.duration(e),o=l=>{let u=this.duration(l);u>r&&(r=u,n=l)},i=Math.ceil(e/N),c=Math.floor(t/N);if(c<=i){for(let l=e+1;l<t;l++)
o(l);return n}for(let l=e+1;l<i*N;l++)o(l);let a=Math.max(1,Math.floor((c-i)/$n));for(let l=i;l<c;l+=a)o(this.longestOf[l]);for(let l=c*N;l<t;l++)o(l);return n}find(e,t,n){
for(let r of this.lanes)if(r.group.track.kind===e){for(let o=this.after(r,n);o<r.beyond&&this.start[o]<=n;o++)if(this.start[o]===n&&this.name[o]===t)return o}return v}laneOf(e){
let t=0,n=this.lanes.length-1;for(;t<n;){let r=t+n+1>>1;this.lanes[r].first<=e?t=r:n=r-1}for(;this.lanes[t].beyond<=e;)t++;return this.lanes[t]}kind(e){return this.
laneOf(e).group.track.kind}};var _n=6,xe=class{constructor(e,t,n,r){this.events=e;this.relations=t;this.go=n;this.search=r}events;relations;go;search;list=d("dl");element(e){this.list.replaceChildren();
let{events:t}=this;switch(this.say("duration",E(t.duration(e))),this.say("begins",Sn(t.start[e])),t.kind(e)){case"gpu":this.operation(e);break;case"idle":this.gap(
e);break;case"api":this.call(e);break;case"ops":this.op(e);break;default:break}let n=t.head.names[t.name[e]];return n.short&&n.cause===null&&this.say("full name",
d("code",{},n.text)),d("div",{class:"body"},d("div",{class:"facts"},this.list),this.within(e))}same(e){let{events:t}=this,n=t.label(e);return d("p",{class:"quie\
t"},`${S(t.counts[t.name[e]])} of this name · `,d("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(e,...t){let n=t.filter(r=>r!=null&&r!=="");n.
length&&this.list.append(d("dt",{},e),d("dd",{},...n))}link(e,t=""){return d("button",{class:"go",title:this.events.text(e),onclick:()=>this.go(e)},this.events.
label(e)+t)}operation(e){let{events:t,relations:n}=this,{head:r,start:o}=t,i=r.launches[t.argument[e]-1],c=n.callOf(e),a=r.names[t.name[e]].identity;if(i?.floor_ns!=
null&&this.say("roofline",`${O(i.floor_ns,t.duration(e))} of it reached: at least ${E(i.floor_ns)}, bound by ${i.bound??"?"}`),a!==null)for(let[u,h]of r.identities[a].
facts)this.say(u,h);i?.grid&&i.block&&(this.say("grid × block",`${i.grid.join(", ")} × ${i.block.join(", ")}`),this.say("threads",S([...i.grid,...i.block].reduce(
(u,h)=>u*h,1)))),i?.registers!=null&&this.say("registers, shared",`${i.registers} a thread, ${C(i.shared_bytes??0)} a block`),i?.moved_bytes!=null&&this.say("mo\
ved",`${C(i.moved_bytes)}${t.duration(e)?`, ${C(i.moved_bytes/t.duration(e)*1e9)}/s`:""}`),i?.source&&this.say("memory",`${i.source} → ${i.target??"?"}`),c!==
v&&(this.say("launched by",this.link(c,`  ${E(t.duration(c))}`)),this.say("launch→start",E(o[e]-o[c])));let l=n.opOf(e);l!==v&&(this.say("op",this.link(l)),this.
inputs(l))}inputs(e){let t=this.events.head.inputs[this.events.argument[e]-1];t&&(t.shapes&&this.say("shapes",d("code",{},t.shapes)),t.dtypes&&this.say("types",
d("code",{},t.dtypes)),t.module&&this.say("module",t.module))}call(e){let{events:t,relations:n}=this,r=n.launched(e),o=t.link[e];r.length&&(this.say("launches",
this.link(r[0]),r.length>1?` and ${S(r.length-1)} more`:null),this.say("launch→start",E(t.start[r[0]]-t.start[e]))),o!==v&&(this.say("op",this.link(o)),this.inputs(
o))}op(e){let{events:t,relations:n}=this,r=t.link[e];this.inputs(e);let o=n.workOf(e);if(o.length){let i=o.reduce((c,a)=>c+t.duration(a),0);this.say("on the GPU",
this.link(o[0]),o.length>1?` and ${S(o.length-1)} more, ${E(i)} in all`:null)}if(r!==v)this.say("backward of",this.link(r));else{let i=n.backwardOf(e);i.length&&
this.say("differentiated by",this.link(i[0]))}}gap(e){let{events:t}=this,n=t.laneOf(e),{start:r,end:o,link:i}=t,c=e,a=e;for(;c>n.first&&i[c-1]===i[e]&&r[c]===o[c-
1];)c--;for(;a+1<n.beyond&&i[a+1]===i[e]&&o[a]===r[a+1];)a++;let l=[];for(let u=c;u<=a;u++)l.push(`${t.label(u)} ${E(t.duration(u))}`);this.say("whole gap",`${E(
o[a]-r[c])}: ${l.join(", ")}`),i[e]!==v&&this.say("ended by",this.link(i[e]))}within(e){let{events:t,relations:n}=this,r=t.laneOf(e),{kind:o}=r.group.track,i=d(
"div",{class:"chain"}),c=n.callOf(e),a=r.group.track.thread!==null?e:c!==v?c:o==="gpu"?n.opOf(e):v;if(a===v)return i;let{thread:l}=t.laneOf(a).group.track,u=t.start[a],
h=n.around(n.group("python",l),u,o==="python"?r.depth:1/0),m=o==="python"?[]:n.around(n.group("ranges",l),u,o==="ranges"?r.depth:1/0),p=o==="python"||o==="range\
s"?[]:n.around(n.group("ops",l),u,o==="ops"?r.depth:1/0),g=[...m,...h.slice(-_n),...p].filter(y=>y!==e);return g.length&&i.append(d("h3",{},"within"),...g.map(y=>this.
link(y,`  ${E(t.duration(y))}`))),i}},Sn=s=>`${(s/1e6).toFixed(3)} ms`;var Rn=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P"],"fold or unf\
old Python"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function kt(s){let e=d("input",{type:"search",placeholder:"Search names   /",
spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),t=d("button",{type:"button","aria-label":"Previous match",disabled:!0},"↑"),n=d("button",{
type:"button","aria-label":"Next match",disabled:!0},"↓"),r=d("output",{"aria-live":"polite"}),o=d("output"),i=d("button",{type:"button",title:"Whole trace (0\
)"},"Whole trace"),c=d("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),a=d("ul",{class:"legend","aria-label":"Causes of idle time"}),l=d("can\
vas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),u=d("canvas",{class:"view",tabindex:0,role:"application","aria-label":"Time\
line. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),h=d("canvas",{class:"over","ari\
a-hidden":"true"}),m=d("div",{class:"tip",role:"tooltip",hidden:!0}),p=d("div",{class:"stage"},u,h,m),g=d("aside",{class:"event","aria-label":"Selection","aria-\
live":"polite",hidden:!0}),y=d("dialog",{"aria-label":"Keys"},d("h2",{},"Keys"),d("dl",{},...Rn.flatMap(([f,k])=>[d("dt",{},...f.flatMap(w=>[d("kbd",{},w)," "])),
d("dd",{},k)])),d("form",{method:"dialog"},d("button",{autofocus:!0},"Close"))),b=d("div",{class:"tools",role:"toolbar","aria-label":"Timeline tools"},e,t,n,r,d(
"span",{class:"room"}),o,i,c);return s.replaceChildren(d("h2",{},"Timeline"),a,b,l,p,g,y),{find:e,previous:t,next:n,found:r,span:o,whole:i,help:c,legend:a,map:l,
stage:p,view:u,over:h,tip:m,panel:g,keys:y}}var Pn=4,Mt=240,Cn=60,Hn={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function Et(s){In(s),Nn(s),Dn(s);let{find:e,next:t,previous:n,whole:r,help:o,keys:i}=s.
parts;e.addEventListener("input",()=>s.seek(e.value)),t.addEventListener("click",()=>s.next(1)),n.addEventListener("click",()=>s.next(-1)),r.addEventListener("c\
lick",()=>s.time.glide(0,s.time.length)),o.addEventListener("click",()=>i.showModal())}function On(s,e){let{events:t,picture:n,time:r,relations:o}=s,{tip:i,view:c}=s.
parts,a=n.eventAt(e.offsetX,e.offsetY);if(a!==s.hovered&&(s.hovered=a,s.drawOver()),c.style.cursor=e.offsetX<160?"default":e.offsetY<39?"col-resize":a!==v?"poin\
ter":"grab",i.hidden=a===v,a===v)return;let l=r.span/(n.width-160),u=t.leap(a,t.laneOf(a).beyond,t.start[a]+l)-a-1,h=o.opOf(a);i.replaceChildren(d("b",{},t.label(
a)),d("span",{},E(t.duration(a)))),t.kind(a)==="gpu"&&h!==v&&i.append(d("span",{},t.text(h))),t.kind(a)==="idle"&&t.link[a]!==v&&i.append(d("span",{},`before ${t.
label(t.link[a])}`)),u>0&&t.duration(a)<l*2&&i.append(d("em",{},`${S(u+1)} events in this column`));let{offsetWidth:m,offsetHeight:p}=i,g=e.offsetY+18;i.style.transform=
`translate(${Math.min(e.offsetX+14,n.width-m-6)}px, ${g+p>n.height?e.offsetY-p-10:g}px)`}function In(s){let{picture:e,time:t,parts:{view:n,tip:r}}=s,o=new Map,i=null;
n.addEventListener("pointerdown",a=>{n.setPointerCapture(a.pointerId),o.set(a.pointerId,a),t.stop();let l=a.offsetX>=160&&(a.shiftKey||a.offsetY<39);i={x:a.offsetX,
y:a.offsetY,start:t.start,end:t.end,scroll:e.scroll,selects:l,moved:!1}}),n.addEventListener("pointermove",a=>{let l=o.get(a.pointerId);if(!l||!i){On(s,a);return}
if(o.set(a.pointerId,a),o.size===2){let p=[...o.values()].find(b=>b.pointerId!==a.pointerId),g=Math.abs(l.offsetX-p.offsetX),y=Math.abs(a.offsetX-p.offsetX);g>8&&
y>8&&t.zoom(g/y,e.timeAt((a.offsetX+p.offsetX)/2)),i.moved=!0;return}let u=a.offsetX-i.x,h=a.offsetY-i.y;if(!i.moved&&Math.hypot(u,h)<Pn)return;if(i.moved=!0,r.
hidden=!0,i.selects){s.selectRange([e.timeAt(Math.max(160,i.x)),e.timeAt(Math.max(160,a.offsetX))]);return}n.style.cursor="grabbing";let m=-u/(e.width-160)*(i.end-
i.start);e.scroll=i.scroll-h,t.move(i.start+m,i.end+m)});let c=a=>{o.delete(a.pointerId),i&&!i.moved&&a.type==="pointerup"&&Un(s,a),o.size||(i=null)};n.addEventListener(
"pointerup",c),n.addEventListener("pointercancel",c),n.addEventListener("pointerleave",()=>{r.hidden=!0,s.hovered=v,s.drawOver()}),n.addEventListener("dblclick",
a=>{let l=e.eventAt(a.offsetX,a.offsetY);l!==v&&s.fit(l)})}function Un(s,e){let{picture:t}=s;if(e.offsetX>=160){s.selectRange(null),s.choose(t.eventAt(e.offsetX,
e.offsetY));return}let n=t.rowAt(e.offsetY)?.toggles;n&&s.fold(n)}function Nn(s){let{picture:e,time:t,parts:{view:n,tip:r}}=s;n.addEventListener("wheel",o=>{let i=o.
shiftKey||Math.abs(o.deltaX)>Math.abs(o.deltaY);if(!o.ctrlKey&&!i&&document.activeElement!==n)return;o.preventDefault(),r.hidden=!0,t.stop();let c=o.deltaMode===
WheelEvent.DOM_DELTA_LINE?16:1,a=o.deltaX*c,l=o.deltaY*c;o.offsetX<160?(e.scroll+=l,s.redraw()):i?t.pan((a||l)/(e.width-160)*t.span):t.zoom(Math.exp(Math.max(-Mt,
Math.min(Mt,l))*(o.ctrlKey?.01:.0022)),e.timeAt(o.offsetX))},{passive:!1})}function Dn(s){let{find:e,view:t,keys:n,panel:r}=s.parts;e.addEventListener("keydown",
o=>{o.key==="Enter"&&(s.next(o.shiftKey?-1:1),o.preventDefault()),o.key==="Escape"&&(e.value="",s.seek(""),t.focus()),o.stopPropagation()}),addEventListener("ke\
ydown",o=>{if(o.metaKey||o.ctrlKey||o.altKey||n.open)return;let i=o.target;i!==t&&i!==document.body&&!r.contains(i)||i.tagName==="BUTTON"&&(o.key==="Enter"||o.key===
" ")||i===document.body&&o.key.startsWith("Arrow")||Gn(s,o)&&o.preventDefault()})}function Gn(s,e){let{time:t,picture:n,chosen:r,events:o}=s,i=e.key.length===1?
e.key.toLowerCase():e.key,c=Hn[i];if(c)return t.glide(t.start+c[0]*t.span,t.end+c[1]*t.span),!0;switch(i){case"?":return s.parts.keys.showModal(),!0;case"/":return s.
parts.find.focus(),s.parts.find.select(),!0;case"n":return s.next(e.shiftKey?-1:1),!0;case"0":return t.glide(0,t.length),!0;case"f":return r!==v&&s.fit(r),!0;case"\
l":return s.followLink(),!0;case"g":return s.nextGap(),!0;case"p":return s.toggle("python"),!0;case"r":return s.selectRange([t.start,t.end]),!0;case"Enter":return r===
v&&s.choose(Fn(s)),!0;case"Escape":return s.selectRange(null),r!==v?s.choose(v):(s.parts.find.value="",s.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let a=i===
"ArrowRight"?1:-1;if(r===v)return t.glide(t.start+.15*a*t.span,t.end+.15*a*t.span),!0;let l=o.laneOf(r),u=r+a;return u>=l.first&&u<l.beyond&&s.choose(u,!0),!0}case"\
ArrowUp":case"ArrowDown":{let a=i==="ArrowDown"?1:-1;if(r===v)return n.scroll+=Cn*a,s.redraw(),!0;let l=s.relations.neighbour(r,a);return l!==v&&s.choose(l,!0),
!0}default:return!1}}function Fn(s){let{events:e,time:t}=s,n=(t.start+t.end)/2;for(let r of e.lanes.filter(o=>o.ready).sort((o,i)=>+(i.group.track.kind==="gpu")-
+(o.group.track.kind==="gpu"))){let o=e.after(r,n);if(o<r.beyond&&e.start[o]<t.end)return o}return v}var Bn=4,De=["matmul","comm","copy","memset"],ke=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d");let r=o=>{let i=(o.
offsetX-160)/(e.clientWidth-160)*n.length,c=n.span/2;n.stop(),n.move(i-c,i+c)};e.addEventListener("pointerdown",o=>{e.setPointerCapture(o.pointerId),r(o)}),e.addEventListener(
"pointermove",o=>{o.buttons&&r(o)})}canvas;events;time;context;image=null;ratio=1;resize(e){this.ratio=e,this.canvas.width=this.canvas.clientWidth*e,this.canvas.
height=this.canvas.clientHeight*e,this.image=null}forget(){this.image=null}draw(e){let{context:t,canvas:n,ratio:r,time:o}=this;if(n.width<=160*r)return;this.image??=
this.sketch(e),t.putImageData(this.image,0,0),t.setTransform(r,0,0,r,0,0);let i=n.clientWidth-160,c=n.clientHeight,a=160+o.start/o.length*i,l=160+o.end/o.length*
i;t.fillStyle=e.css.dim,t.font=`11px ${Y}`,t.textBaseline="middle",t.fillText("whole trace",10,c/2),t.fillStyle=`${e.css.paper}b8`,t.fillRect(160,0,a-160,c),t.fillRect(
l,0,160+i-l,c),t.strokeStyle=e.css.accent,t.lineWidth=1.5,t.strokeRect(a+.75,1.25,Math.max(2,l-a-1.5),c-2.5)}sketch(e){let{events:t,canvas:n,ratio:r}=this,{head:o}=t,
{width:i,height:c}=n,a=Math.round(160*r),l=Math.max(1,i-a),u=this.busiestDevice(),h=De.map(()=>new Float32Array(l)),m=o.causes.map(()=>new Float32Array(l));for(let w of t.
lanes)w.group.track.device===u&&(w.group.track.kind==="gpu"&&this.spread(w,l,L=>h[Math.max(0,De.indexOf(o.names[t.name[L]].kind))]),w.group.track.kind==="idle"&&
this.spread(w,l,L=>m[Math.max(0,o.causes.indexOf(o.names[t.name[L]].cause??""))]));let p=new ImageData(i,c),g=new Uint32Array(p.data.buffer),y=Math.round(Bn*r),
b=c-2*y,f=De.map(w=>X(ge(w,e.dark))),k=o.causes.map(w=>X(Ue(Ne(w),e.paper,.8)));g.fill(e.pixels.paper);for(let w=0;w<l;w++){let L=c-y,x=1,A=($,P)=>{let H=Math.max(
y,L-$*b);for(let R=Math.round(L)-1;R>=Math.round(H);R--)g[R*i+a+w]=P;L=H};h.forEach(($,P)=>{let H=Math.min(x,$[w]);A(H,f[P]),x-=H}),m.forEach(($,P)=>A($[w],k[P]))}
return p}busiestDevice(){let e=new Map;for(let{group:t,first:n,beyond:r}of this.events.lanes){let{device:o,kind:i}=t.track;i==="gpu"&&o!==null&&e.set(o,(e.get(o)??
0)+this.events.sum[r]-this.events.sum[n])}return[...e].sort((t,n)=>n[1]-t[1])[0]?.[0]??null}spread(e,t,n){let{start:r,end:o}=this.events,i=t/this.time.length;for(let c=e.
first;c<e.beyond;c++){let a=r[c]*i,l=o[c]*i,u=n(c);for(let h=Math.floor(a);h<l&&h<t;h++)u[h]+=Math.min(l,h+1)-Math.max(a,h)}}};var Me=class{constructor(e,t){this.canvas=e;this.picture=t;this.context=e.getContext("2d")}canvas;picture;context;ratio=1;resize(e){this.ratio=e,this.canvas.width=
this.picture.width*e,this.canvas.height=this.picture.height*e}draw(e,t){let{context:n,picture:r,ratio:o}=this;n.setTransform(o,0,0,o,0,0),n.clearRect(0,0,r.width,
r.height),n.save(),n.beginPath(),n.rect(160,0,r.width-160,r.height),n.clip(),e.range&&this.range(e.range,t),n.beginPath(),n.rect(160,39,r.width-160,r.height),n.
clip();for(let i of e.family)this.frame(i,t.css.dim,1.5);for(let[i,c]of e.arrows)this.arrow(i,c,t);e.chosen>=0&&this.frame(e.chosen,t.css.accent,2),e.hovered>=0&&
e.hovered!==e.chosen&&this.frame(e.hovered,t.css.ink,1),n.restore()}range([e,t],n){let{context:r,picture:o}=this,i=o.x(e),c=o.x(t);r.globalAlpha=.12,r.fillStyle=
n.css.accent,r.fillRect(i,0,c-i,o.height),r.globalAlpha=1,r.fillRect(i,0,1,o.height),r.fillRect(c-1,0,1,o.height)}frame(e,t,n){let{context:r,picture:o}=this,i=o.
box(e),{pinned:c}=o.layout;if(!i||i.row.y>=c&&i.y<39+c-8)return;let a=Math.max(156,i.x),l=Math.min(o.width+4,i.right);r.strokeStyle=t,r.lineWidth=n,r.strokeRect(
a-.5,i.y-.5,Math.max(2,l-a),i.height+1)}arrow(e,t,n){let{context:r,picture:o}=this,i=o.box(e),c=o.box(t);if(!i||!c)return;let a=i.y>c.y,l=i.x,u=c.x+1,h=a?1:-1,m=Math.
max(39+o.layout.pinned-4,a?i.y:i.y+i.height),p=a?c.y+c.height:c.y,g=(p-m)*.55||20;for(let[y,b]of[[n.css.paper,4],[n.css.accent,1.75]])r.strokeStyle=r.fillStyle=
y,r.lineWidth=b,r.beginPath(),r.moveTo(l,m),r.bezierCurveTo(l,m+g,u,p-g,u,p+5*h),r.stroke();r.beginPath(),r.arc(l,m,3,0,7),r.fill(),r.beginPath(),r.moveTo(u,p),
r.lineTo(u-4.5,p+8*h),r.lineTo(u+4.5,p+8*h),r.fill()}};var Ge=24,Ee=class{constructor(e){this.events=e}events;linkedTo(e,t){let n=[],{link:r}=this.events;for(let o of this.events.lanes)if(o.group.track.kind===e)for(let i=o.
first;i<o.beyond;i++)t(r[i])&&n.push(i);return n}launched(e){return this.linkedTo("gpu",t=>t===e)}backwardOf(e){return this.linkedTo("ops",t=>t===e)}callsOf(e){
let{events:t}=this,{start:n,end:r}=t,o=t.laneOf(e).group.track.thread,i=[];for(let c of t.lanes)if(!(c.group.track.kind!=="api"||c.group.track.thread!==o))for(let a=t.
after(c,n[e]);a<c.beyond&&n[a]<r[e];a++)n[a]>=n[e]&&i.push(a);return i}workOf(e){let t=new Set(this.callsOf(e));return this.linkedTo("gpu",n=>n===e||t.has(n))}callOf(e){
let{events:t}=this,n=t.link[e];return t.kind(e)==="gpu"&&n!==v&&t.kind(n)==="api"?n:v}opOf(e){let{events:t}=this,n=t.kind(e);if(n==="ops")return e;if(n==="api")
return t.link[e];if(n!=="gpu")return v;let r=this.callOf(e);return r!==v?t.link[r]:t.link[e]}arrows(e){let{events:t}=this,n=t.link[e];switch(t.kind(e)){case"gpu":case"\
syncs":return n!==v?[[n,e]]:[];case"idle":return n!==v&&t.link[n]!==v?[[t.link[n],n]]:[];case"api":return this.launched(e).slice(0,Ge).map(r=>[e,r]);case"ops":return[
...n!==v?[[n,e]]:this.backwardOf(e).slice(0,Ge).map(o=>[e,o]),...this.workOf(e).slice(0,Ge).map(o=>[t.link[o],o])];default:return[]}}family(e){let{events:t}=this,
n=t.link[e],r=[n];return n!==v&&r.push(t.link[n]),t.kind(e)==="idle"&&n!==v&&t.link[n]!==v&&r.push(t.link[t.link[n]]),r.filter(o=>o!==v)}around(e,t,n=1/0){let r=[];
for(let o of e?.lanes??[]){if(o.depth>=n||!o.ready)continue;let i=this.events.after(o,t);i<o.beyond&&this.events.start[i]<=t&&r.push(i)}return r}group(e,t){return this.
events.groups.find(n=>n.track.kind===e&&n.track.thread===t)}neighbour(e,t){let{events:n}=this,r=n.laneOf(e),o=r.group.lanes[r.depth+t];if(!o)return v;let i=t<0?
n.after(o,n.start[e]):Wn(n,o,n.start[e]);return i<o.beyond&&n.start[i]<n.end[e]&&n.end[i]>n.start[e]?i:v}};function Wn(s,e,t){let n=e.first,r=e.beyond;for(;n<r;){
let o=n+r>>>1;s.start[o]<t?n=o+1:r=o}return n}var Te=class{constructor(e){this.events=e}events;matches=null;total=0;wanted=null;seek(e){let t=e.trim().toLowerCase();this.choose(t?n=>n.text.toLowerCase().includes(
t)||n.short.toLowerCase().includes(t):null)}seekNames(e){let t=new Set(e);this.choose((n,r)=>t.has(r))}again(){this.choose(this.wanted)}choose(e){if(this.wanted=
e,this.matches=null,this.total=0,!e)return;let{events:t}=this,n=Uint8Array.from(t.head.names,(i,c)=>e(i,c)?1:0),r=new Uint32Array(t.start.length+1),{name:o}=t;for(let i=0,
c=0;i<o.length;i++)r[i+1]=c+=n[o[i]];n.forEach((i,c)=>{i&&(this.total+=t.counts[c])}),this.matches={names:n,before:r}}next(e,t,n){if(!this.matches||!this.total)
return v;let r=this.step(e,t,t!==v?this.events.start[t]:n);return r!==v?r:this.step(e,v,e>0?-1/0:1/0)}step(e,t,n){let{events:r}=this,{start:o,name:i}=r,{names:c}=this.
matches,a=(u,h)=>(o[u]-o[h]||u-h)*e>0,l=v;for(let u of r.lanes){if(!u.ready)continue;let h=u.first,m=u.beyond;for(;h<m;){let p=h+m>>>1;o[p]<n||e<0&&o[p]===n&&p<
t?h=p+1:m=p}for(let p=e>0?h:h-1;p>=u.first&&p<u.beyond&&!(l!==v&&a(p,l));p+=e)if(c[i[p]]&&(t===v||a(p,t))){l=p;break}}return l}};var Fe=8,Kn=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function zn(s,e,t,n){let r=new Map;for(let o of s.lanes){
let{kind:i}=o.group.track;if(!(!o.ready||!n.includes(i)||i==="ops"&&o.depth>0))for(let c=s.after(o,e);c<o.beyond&&s.start[c]<t;c++){let a=Math.min(t,s.end[c])-Math.
max(e,s.start[c]),l=r.get(s.name[c]);l?(l[0]++,l[1]+=a):r.set(s.name[c],[1,a])}}return[...r].map(([o,[i,c]])=>({name:o,count:i,time:c})).sort((o,i)=>i.time-o.time)}
function Tt(s,e,t,n){let r=d("div",{class:"totals"});for(let[o,i]of Kn){let c=zn(s,e,t,i),a=c.reduce((h,m)=>h+m.time,0);if(!c.length)continue;let l=c.slice(0,Fe).
map(h=>{let m=s.head.names[h.name],p=m.short||m.text;return d("tr",{},d("td",{class:"number"},E(h.time)),d("td",{class:"number"},O(h.time,t-e)),d("td",{class:"n\
umber"},S(h.count)),d("td",{},d("button",{class:"go",title:m.text,onclick:()=>n(p)},p)))}),u=c.length>Fe?d("p",{class:"quiet"},`and ${S(c.length-Fe)} more names`):
"";r.append(d("div",{},d("h3",{},`${o}: ${E(a)}`),d("table",{},d("thead",{},d("tr",{},...["time","share","count","name"].map((h,m)=>d("th",{scope:"col",class:m<
3?"number":""},h)))),d("tbody",{},...l)),u))}return r}var Le=class{constructor(e,t){this.length=e;this.changed=t;this.end=e}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(e,t){let{length:n}=this,
r=Math.min(n*1.02,Math.max(200,t-e)),o=t-e===r?e:(e+t-r)/2;this.start=Math.max(-.01*n,Math.min(o,(1+.01)*n-r)),this.end=this.start+r,this.changed()}pan(e){this.
move(this.start+e,this.end+e)}zoom(e,t=(this.start+this.end)/2){this.move(t-(t-this.start)*e,t+(this.end-t)*e)}stop(){this.gliding++}glide(e,t){let n=++this.gliding,
r=this.start,o=this.end,i=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(e,t);return}let c=()=>{if(n!==this.gliding)return;
let a=Math.min(1,(performance.now()-i)/160),l=1-(1-a)**3;this.move(r+(e-r)*l,o+(t-o)*l),a<1&&requestAnimationFrame(c)};c()}};var Xn=400,Yn=160,Ae=class{constructor(e,t,n,r,o=()=>{}){this.head=e;this.whenDrawn=o;this.events=new we(e),this.events.read(t,n,0,e.early_parts),this.parts=kt(
r),this.time=new Le(Math.max(1,e.length_ns),()=>this.redraw()),this.picture=new ve(this.parts.view,this.events,this.time),this.overlay=new Me(this.parts.over,this.
picture),this.minimap=new ke(this.parts.map,this.events,this.time),this.relations=new Ee(this.events),this.search_=new Te(this.events),this.details=new xe(this.
events,this.relations,i=>this.choose(i,!0),i=>this.search(i)),this.parts.map.hidden=!e.tracks.some(i=>i.device!==null),this.dress(),this.legend(),this.resize(),
this.openAddress(),new ResizeObserver(()=>this.resize()).observe(this.parts.stage),pt(()=>{this.dress(),this.redraw()}),addEventListener("hashchange",()=>this.openAddress()),
Et(this)}head;whenDrawn;events;time;picture;relations;search_;parts;chosen=v;hovered=v;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;gaps=null;addRest(e){
let t=this.head.tracks.reduce((r,o)=>Math.max(r,o.part+1),0);this.events.read(e,0,this.head.early_parts,t),this.parts.find.value&&this.seek(this.parts.find.value);
let{event:n}=Ie(location.hash);n!==void 0&&this.chosen===v&&this.openAddress(),this.chosen!==v&&this.choose(this.chosen),this.redraw()}replace(e,t,n){let{events:r,
chosen:o}=this,i=o===v?null:{kind:r.kind(o),name:r.name[o],start:r.start[o]};r.renew(e),r.read(t,n,0,e.early_parts),this.picture.place(),this.minimap.forget(),this.
gaps=null,this.search_.again(),this.choose(i?r.find(i.kind,i.name,i.start):v),this.afterSearch()}goTo(e,t){let n=(t-e)*.05;this.parts.stage.scrollIntoView({block:"\
nearest"}),this.time.glide(e-n,t+n)}search(e){this.parts.find.value=e,this.seek(e),this.parts.stage.scrollIntoView({block:"nearest"}),this.next(1)}showFinding(e){
let t=this.head.spots.find(n=>n.finding===e);if(t){if(this.parts.stage.scrollIntoView({block:"center"}),!t.names.length){this.throughGaps(t.cause);return}this.parts.
find.value="",this.search_.seekNames(t.names),this.afterSearch(),this.next(1)}}redraw(){this.pending||(this.pending=!0,requestAnimationFrame(()=>{this.pending=!1,
this.draw()}))}draw(){this.picture.draw(this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(this.look),this.drawOver(),this.parts.span.textContent=
E(this.time.span),this.whenDrawn(),clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),Xn)}drawOver(){let{chosen:e,hovered:t,range:n,relations:r}=this,
o=e!==v;this.overlay.draw({chosen:e,hovered:t,range:n,family:o?r.family(e):[],arrows:o?this.arrows:[]},this.look)}arrows=[];dress(){this.look=xt(),this.paint=wt(
this.head.names,this.look.dark,this.look.paper),this.minimap.forget(),this.colourMatches()}colourMatches(){let{full:e,faded:t}=this.paint,{matches:n}=this.search_;
this.colours=n?e.map((r,o)=>n.names[o]?r:t[o]):e}resize(){let e=window.devicePixelRatio||1,t=this.parts.stage.getBoundingClientRect();this.picture.resize(t.width,
t.height,e),this.limitHeight(),this.overlay.resize(e),this.minimap.resize(e),this.draw()}limitHeight(){this.parts.stage.style.maxHeight=`${Math.max(Yn,39+this.picture.
layout.height+17)}px`}fold(e){e.open=!e.open,this.placed()}placed(){this.picture.place(),this.limitHeight(),this.redraw()}legend(){for(let[e,t]of this.head.names.
entries()){if(t.cause===null||!this.events.counts[e])continue;let{cause:n}=t,r=M("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},M("rect",{class:`\
part ${n.replaceAll("_","-")} cause`,width:1,height:1}));this.parts.legend.append(d("li",{},d("button",{type:"button",class:"plain",title:"Go through these gaps\
, the largest first",onclick:()=>this.throughGaps(n)},r,t.short||t.text)))}}throughGaps(e){let{events:t}=this,n=this.head.names.flatMap((o,i)=>o.cause===e?[i]:[]);
this.parts.find.value=`idle: ${e.replaceAll("_"," ")}`,this.search_.seekNames(n);let r=[];for(let o of t.lanes)if(o.group.track.kind==="idle")for(let i=o.first;i<
o.beyond;i++)n.includes(t.name[i])&&r.push(i);r.sort((o,i)=>t.duration(i)-t.duration(o)),this.gaps={rows:r,at:-1},this.afterSearch(),this.nextGap()}nextGap(){let{
gaps:e}=this;e?.rows.length&&(e.at=(e.at+1)%e.rows.length,this.choose(e.rows[e.at],!0),this.parts.found.textContent=`gap ${S(e.at+1)} of ${S(e.rows.length)}, th\
e largest first: G for the next`)}seek(e){this.gaps=null,this.search_.seek(e),this.afterSearch()}afterSearch(){let{found:e,next:t,previous:n}=this.parts,{matches:r,
total:o}=this.search_;e.textContent=r?ee(o,"match","matches"):"",t.disabled=n.disabled=!o,this.colourMatches(),this.redraw()}next(e){let t=this.search_.next(e,this.
chosen,e>0?this.time.start:this.time.end);t!==v&&this.choose(t,!0)}choose(e,t=!1){let{panel:n}=this.parts,{events:r}=this;if(this.chosen=e,this.arrows=e===v?[]:
this.relations.arrows(e),n.hidden=e===v&&!this.range,e!==v){let o=this.head.names[r.name[e]],i=this.paint.full[r.name[e]],c=M("svg",{class:"swatch",viewBox:"0 0\
 1 1","aria-hidden":"true"},M("rect",{width:1,height:1,fill:vt([i&255,i>>>8&255,i>>>16&255])}));this.show(d("h3",{},c,o.cause!==null?o.text:r.label(e)),this.details.
same(e),this.details.element(e)),t&&this.reveal(e)}else this.range&&this.describeRange();this.redraw()}selectRange(e){this.range=e&&[Math.max(0,Math.min(...e)),
Math.min(this.time.length,Math.max(...e))],this.range&&(this.chosen=v,this.arrows=[]),this.parts.panel.hidden=!this.range&&this.chosen===v,this.range&&this.describeRange(),
this.redraw()}describeRange(){let[e,t]=this.range,n=d("button",{type:"button",onclick:()=>this.time.glide(e,t)},"Zoom here");this.show(d("h3",{},`Selected ${E(t-
e)}`),n,Tt(this.events,e,t,r=>this.search(r)))}show(e,t,n){let r=d("button",{type:"button",class:"close","aria-label":"Close",onclick:()=>{this.selectRange(null),
this.choose(v),this.parts.view.focus({preventScroll:!0})}},"×");this.parts.panel.replaceChildren(d("div",{class:"title"},e,t,r),n)}reveal(e){let{events:t,time:n}=this,
r=t.laneOf(e),o=t.duration(e),i=t.start[e];r.group.open||this.fold(r.group);let c=Math.max(o*8,4e4);o>n.span*.9||o/n.span<.004?n.glide(Math.max(0,i-c),Math.min(
n.length,i+o+c)):(i<n.start||i+o>n.end)&&n.glide(i+o/2-n.span/2,i+o/2+n.span/2),this.scrollTo([e,...this.relations.family(e)])}scrollTo(e){let{picture:t}=this,{
pinned:n}=t.layout,r=t.height-39-n,o=e.map(a=>t.layout.of(this.events.laneOf(a))).filter(a=>a!==void 0&&a.y>=n).map(a=>a.y);if(!o.length)return;let i=Math.min(...o),
c=Math.max(...o)+17;c-i>r&&(i=o[0],c=i+17),i-t.scroll<n?t.scroll=i-n-22:c-t.scroll>n+r&&(t.scroll=Math.min(i-n-22,c-n-r+6))}toggle(e){let t=this.events.groups.filter(
r=>r.track.kind===e),n=!t.some(r=>r.open);for(let r of t)r.open=n;this.placed()}fit(e){let t=this.events.duration(e)*.15+200;this.time.glide(this.events.start[e]-
t,this.events.end[e]+t)}followLink(){let{chosen:e,relations:t,events:n}=this;if(e===v)return;let r=n.link[e],o=r!==v?r:t.launched(e)[0]??(n.kind(e)==="ops"?t.backwardOf(
e)[0]??t.workOf(e)[0]:void 0);o!==void 0&&this.choose(o,!0)}openAddress(){let{at:e,event:t,range:n}=Ie(location.hash);e&&e[1]>e[0]&&this.time.move(e[0],e[1]),n&&
this.selectRange(n),t!==void 0&&t<this.head.events&&this.events.laneOf(t).ready&&this.choose(t),(e||n||t!==void 0)&&this.parts.stage.scrollIntoView({block:"cent\
er"})}writeAddress(){let{time:e,chosen:t,range:n}=this,r=e.start<=0&&e.end>=e.length,o=yt({...r?{}:{at:[e.start,e.end]},...t!==v?{event:t}:{},...n?{range:n}:{}});
if(!(!o&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",o?`#${o}`:location.href.split("#")[0])}catch{}}};var Lt={begin:performance.now()},$e=s=>{Lt[s]=performance.now()},At=()=>new Promise(s=>requestAnimationFrame(()=>setTimeout(s)));function $t(){let s=[...document.
querySelectorAll("main section[id]")].flatMap(e=>{let t=e.querySelector("h2")?.firstChild?.textContent??e.getAttribute("aria-label");return t&&e.childElementCount?
[d("a",{href:`#${e.id}`},t)]:[]});j("contents").replaceChildren(...s)}async function qn(){let s=await me("data-timeline");$e("inflated");let{head:e,bytes:t,at:n}=pe(
s),r=null,o=new fe(()=>r),i=r=new Ae(e,t,n,j("timeline"),()=>o.moved());$e("drawn"),$t();for(let c of document.querySelectorAll("[data-finding]")){let a=Number(
c.dataset.finding);c.append(d("button",{type:"button",class:"jump",onclick:()=>i.showFinding(a)},"Show on the timeline"))}return At().then(()=>$e("painted")),i}
async function Vn(s){await At(),s.addRest(await me("data-python"));let e=await gt("data-panels");for(let t of dt){let n=e[t.name];if(!n)continue;let r=d("div",{
class:"body"});j("panels").append(d("section",{id:t.name,class:"section"},d("h2",{},t.title),r)),t.draw(n,r,s)}$t(),$e("complete")}document.querySelector("heade\
r")?.append(ft());var jn=new Promise(s=>document.addEventListener("DOMContentLoaded",()=>s()));qn().then(async s=>{Object.assign(window,{warpline:{marks:Lt,timeline:s}}),
await jn,await Vn(s)});})();
